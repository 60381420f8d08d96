"""`shapeguard cache verify`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report


@click.command(short_help="Check every record; mend with --repair.")
@click.option("--repair", is_flag=True, help="Remove what cannot be read, count anew, save a damaged database.")
@cache_options
@report_options
def command(folder: Path, repair: bool) -> Report:
    """Check that every row is a record that can be read and found; exit 1 if one is not."""
    from shapeguard.cache.check import check
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import verified
    from shapeguard.core.errors import CacheError

    troubles = check(folder, repair=repair)
    try:
        with GraphCache(folder, for_reading=True) as cache:
            num_records = cache.statistics().records
    except CacheError:
        num_records = 0  # said in the troubles
    return verified(troubles, num_records=num_records)
