"""`shapeguard cache prune`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from shapeguard.cli.cache_options import Age, Size, cache_options
from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import JSON, Report, Text


@click.command(short_help="Forget records: old ones, those no lock names, those beyond a size.")
@click.option(
    "--keep-lock",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Forget what this lock does not name; repeatable.",
)
@click.option("--older-than", type=Age(), help="Forget what was not used for so long: 30d, 12h.")
@click.option("--max-size", type=Size(), help="Forget what was not used for longest, down to this size: 100M.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@cache_options
@report_options
def command(
    folder: Path, keep_lock: tuple[Path, ...], older_than: int | None, max_size: int | None, dry_run: bool
) -> Report:
    """Forget records. What a lock given with --keep-lock names always stays."""
    from shapeguard.cache.prune import excess, graphs_of
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import size

    if not keep_lock and older_than is None and max_size is None:
        raise UsageError("nothing was said to forget", hint="give --keep-lock, --older-than or --max-size")
    before = time.time() - older_than if older_than is not None else None
    with GraphCache(folder, for_reading=dry_run) as cache:
        ages = cache.ages()
        kept = graphs_of(cache, keep_lock) if keep_lock else None
        gone = excess(ages, before=before, kept=kept, max_bytes=max_size)
        if not dry_run:
            cache.delete(gone)
    num_bytes = sum(length for id, _, length in ages if id in gone)
    text = f"{'would forget' if dry_run else 'forgot'} {len(gone)} of {len(ages)} records, {size(num_bytes)}"
    ids: list[JSON] = [*sorted(gone)]
    document: dict[str, JSON] = {"schema": 1, "dry_run": dry_run, "records": len(gone), "bytes": num_bytes, "ids": ids}
    return Report(tool="cache", sections=(Text(text=text),), document=document)
