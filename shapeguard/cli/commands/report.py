"""`shapeguard report`: look at a run again, or at what changed since another."""

from __future__ import annotations

import json
import os
from dataclasses import replace
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
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="A simulated run of the same program: say how far it predicted this one, which ran on a device.",
)
@click.option(
    "--share",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --against: write a file without paths, lines and names, to send with an issue.",
)
@click.option("--overwrite", is_flag=True, help="Replace files that --output names.")
@report_options
def command(
    run: Path, by: str, other: Path | None, against: Path | None, share: Path | None, overwrite: bool
) -> Report:
    """Show RUN, a folder that `shapeguard trace` made.

    With --diff, show the graphs that came, went and changed since the other run; exit 1 if more regions compile.
    With --against, show which graphs a simulated run predicted; exit 1 if one is missing or was not predicted.
    """
    from shapeguard.runs.diff import compare
    from shapeguard.runs.remember import recorded
    from shapeguard.runs.stream import read_run
    from shapeguard.runs.summary import summarise
    from shapeguard.runs.view import report

    if not overwrite:
        _refuse_existing(share)
    if against is not None:
        if other is not None:
            raise click.UsageError("--against cannot stand beside --diff.")
        return _reconciled(run, against, share)
    if share is not None:
        raise click.UsageError("--share goes with --against.")
    summary = summarise(read_run(run))
    if other is None:
        return report(summary, folder=str(run), by=by, records=recorded(os.environ), root=Path.cwd())
    return compare(summarise(read_run(other)), summary)


def _reconciled(run: Path, against: Path, share: Path | None) -> Report:
    from shapeguard.core.files import replace_file
    from shapeguard.runs.reconcile import reconcile
    from shapeguard.runs.stream import read_run

    report = reconcile(read_run(run), read_run(against))
    if share is not None:
        text = json.dumps(report.document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
        try:
            replace_file(share, text.encode())
        except OSError as error:
            raise UsageError(f"cannot write {share}: {error.strerror}", hint="give another file") from error
        return replace(report, notes=(f"wrote {share}: no path, line, model or command stands in it",))
    return report


def _refuse_existing(share: Path | None) -> None:
    named = [(None, str(share))] if share is not None else []
    for _, path in [*current_output().files, *named]:
        if path != "-" and Path(path).exists():
            raise UsageError(f"{path} exists", hint="give another file, or --overwrite")
