"""`shapeguard cache clean`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import Report


@click.command(short_help="Remove failed compiles, stale locks, old versions from NEFF folders.")
@click.option(
    "--neff-dir",
    type=click.Path(file_okay=False, path_type=Path),
    multiple=True,
    help="Folder of NEFFs; repeatable. [default: those the Neuron stacks read here]",
)
@click.option("--failed", is_flag=True, help="Compiles that failed or were cut off.")
@click.option("--locks", is_flag=True, help="Locks that no living process holds.")
@click.option("--old-versions", is_flag=True, help="Compiles of all compilers but the newest.")
@click.option("--all", "everything", is_flag=True, help="Every compile that no process holds.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@report_options
def command(
    neff_dir: tuple[Path, ...], failed: bool, locks: bool, old_versions: bool, everything: bool, dry_run: bool
) -> Report:
    """Remove from the folders of compiled files what is of no use. What a living process holds always stays.

    Without a choice: --failed and --locks. Try --dry-run first.
    """
    from shapeguard.cache.clean import Choice, carry_out, plan
    from shapeguard.cache.neff_folder import look, neff_folders
    from shapeguard.cache.neff_view import cleaned

    roots = neff_dir or tuple(neff_folders(os.environ))
    if not roots:
        raise UsageError("there is no folder of NEFFs here", hint="give one with --neff-dir")
    is_plain = not (failed or locks or old_versions or everything)
    choice = Choice(
        failed=failed or is_plain, locks=locks or is_plain, old_versions=old_versions, everything=everything
    )
    done = []
    for root in roots:
        removals = plan(look(root), choice)
        done += [(each, "") for each in removals] if dry_run else list(carry_out(removals, root=root))
    return cleaned(done, dry_run=dry_run)
