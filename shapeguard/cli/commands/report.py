"""`shapeguard report`: look at a run again, or at what changed since another."""

from __future__ import annotations

import os
from pathlib import Path

import click

from shapeguard.cli.options import current_output, report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import Report

WAYS = ("cause", "graph", "shape", "rank", "line")


@click.command(short_help="Show a run again, or what changed since another.")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(WAYS), default="cause", show_default=True, help="What to list.")
@click.option("--diff", "other", type=click.Path(path_type=Path), help="An earlier run to compare with.")
@click.option("--overwrite", is_flag=True, help="Replace files that --output names.")
@report_options
def command(run: Path, by: str, other: Path | None, overwrite: bool) -> Report:
    """Show RUN, a folder that `shapeguard trace` made.

    With --diff, show the graphs that came, went and changed since the other run; exit 1 if more regions compile.
    """
    from shapeguard.runs.diff import compare
    from shapeguard.runs.remember import recorded
    from shapeguard.runs.stream import read_run
    from shapeguard.runs.summary import summarise
    from shapeguard.runs.view import report

    if not overwrite:
        _refuse_existing()
    summary = summarise(read_run(run))
    if other is None:
        return report(summary, folder=str(run), by=by, records=recorded(os.environ), root=Path.cwd())
    return compare(summarise(read_run(other)), summary)


def _refuse_existing() -> None:
    for _, path in current_output().files:
        if path != "-" and Path(path).exists():
            raise UsageError(f"{path} exists", hint="give another file, or --overwrite")
