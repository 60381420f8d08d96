"""`shapeguard cache dir`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report, Text


@click.command(short_help="Print the cache's folder.")
@cache_options
@report_options
def command(folder: Path) -> Report:
    """Print the folder of the graph cache; it need not exist yet."""
    text = str(folder.absolute())
    return Report(
        tool="cache", sections=(Text(text=f"{text}\n", is_verbatim=True),), document={"schema": 1, "folder": text}
    )
