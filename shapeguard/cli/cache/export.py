"""`shapeguard cache export`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options, demand_folder, share_options
from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import Report


@click.command(name="export", short_help="Write records and NEFFs into one archive.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@share_options
@cache_options
@report_options
def command(
    folder: Path,
    file: Path,
    lock_file: Path | None,
    model: str,
    neff_dir: Path | None,
    *,
    dry_run: bool,
    overwrite: bool,
) -> Report:
    """Write what is recorded into FILE, a plain tar whose bytes depend on its contents only."""
    from shapeguard.cache.archive import write_archive
    from shapeguard.cache.named import named
    from shapeguard.cache.push import plan_push
    from shapeguard.cache.share import chosen
    from shapeguard.cache.share_view import pushed
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import with_skipped

    with GraphCache(folder, for_reading=True) as cache:
        records = chosen(cache, model)
    demand_folder(neff_dir)
    if file.is_file() and not overwrite and not dry_run:
        raise UsageError(f"{str(file)!r} exists", hint="give --overwrite, or another file")
    plan = plan_push(records, None, lock=named(lock_file) if lock_file else None, neff_dir=neff_dir)
    if not dry_run:
        write_archive(file, plan)
    return with_skipped(pushed(plan, str(file), dry_run=dry_run, verbs=("write", "wrote")), cache.skipped)
