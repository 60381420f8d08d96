"""`shapeguard cache import`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options, share_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report


@click.command(name="import", short_help="Take records and NEFFs from an archive.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@share_options
@cache_options
@report_options
def command(
    folder: Path, file: Path, lock_file: Path | None, model: str, neff_dir: Path | None, dry_run: bool
) -> Report:
    """Take what is lacking here from FILE, which `export` wrote. All of it is checked before any is kept."""
    from shapeguard.cache.archive import Archive
    from shapeguard.cache.named import named
    from shapeguard.cache.pull import plan_pull, pull
    from shapeguard.cache.share_view import pulled
    from shapeguard.cache.store import GraphCache

    archive = Archive(file)
    archive.verify()
    with GraphCache(folder, for_reading=dry_run) as cache:
        lock = named(lock_file) if lock_file else None
        plan = plan_pull(archive, cache, model=model, lock=lock, neff_dir=neff_dir)
        num_new = 0 if dry_run else pull(plan, archive, cache, neff_dir=neff_dir)
    return pulled(plan, str(file), num_new=num_new, dry_run=dry_run, verbs=("take", "took"))
