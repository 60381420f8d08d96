"""`shapeguard cache show`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options
from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import Report


@click.command(short_help="Show all that is known of one graph.")
@click.argument("id")
@cache_options
@report_options
def command(folder: Path, id: str) -> Report:
    """Show the record whose ID begins so; `shapeguard cache ls` lists them."""
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import shown

    with GraphCache(folder, for_reading=True) as cache:
        found = cache.ids(id.lower()) if id and id.isalnum() and id.isascii() else []
        if not found:
            raise UsageError(f"no record's id begins with {id!r}", hint="`shapeguard cache ls` lists them")
        if len(found) > 1:
            some = ", ".join(each[: len(id) + 4] for each in found[:3])
            raise UsageError(f"{len(found)} ids begin with {id!r}: {some}", hint="give more digits of it")
        record = cache.get(found[0])
    assert record is not None
    return shown(record)
