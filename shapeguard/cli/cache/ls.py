"""`shapeguard cache ls`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.cache_options import cache_options, picked, record_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report

if TYPE_CHECKING:
    from shapeguard.cache.select import Wanted


@click.command(short_help="List what is recorded.")
@click.argument("model", default="")
@click.option("--eager", is_flag=True, help="List eager operators instead of graphs.")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Rows to show; 0 is all.")
@record_options
@cache_options
@report_options
def command(folder: Path, wanted: Wanted, eager: bool, limit: int) -> Report:
    """List the recorded graphs of MODEL: a class name, NAME@CONFIGURATION, or a pattern with `*`. Without it: all."""
    from shapeguard.cache.select import is_model
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import listed, with_skipped
    from shapeguard.core.graphs import ModelKey

    with GraphCache(folder) as cache:
        found = picked(cache, wanted, eager=eager)
        others = {} if eager else cache.models(eager=True)
    num_eager = 0
    for key, number in others.items():
        name, _, config = key.partition("@")
        num_eager += number if is_model(wanted.model, ModelKey(name=name, config=config)) else 0
    return with_skipped(listed(found, limit=limit or len(found), num_eager=num_eager), cache.skipped)
