"""`shapeguard cache lookup`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.cache_options import cache_options, picked, record_options
from shapeguard.cli.options import report_options
from shapeguard.core.errors import Exit
from shapeguard.core.graphs import EAGER_KINDS
from shapeguard.core.report import Report, Text

if TYPE_CHECKING:
    from shapeguard.cache.select import Wanted


@click.command(short_help="Say whether a model was compiled at a shape.")
@click.argument("model")
@click.argument("shape", default="")
@record_options
@cache_options
@report_options
def command(folder: Path, wanted: Wanted) -> Report:
    """Say whether MODEL is recorded at SHAPE, such as 8x512 or input_ids=8x512:int64; exit 1 if it is not."""
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import listed, with_skipped

    with GraphCache(folder, for_reading=True) as cache:
        found = picked(cache, wanted, eager=wanted.kind in EAGER_KINDS)
    report = with_skipped(listed(found, limit=len(found)), cache.skipped)
    if found:
        return report
    hint = Text(text="not recorded; `shapeguard cache why` names the nearest and what differs")
    return replace(report, sections=(hint,), exit_code=Exit.FINDINGS)
