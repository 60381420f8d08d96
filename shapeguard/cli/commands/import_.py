"""`shapeguard import`: make a run of what another tool wrote."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.options import report_options
from shapeguard.core.report import Report

KINDS = ("graph-stats", "torch-trace", "xla-cache", "xla-log")


@click.command("import", short_help="Make a run of a log that another tool wrote.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--kind", type=click.Choice(KINDS), help="What it is. [default: found out]")
@click.option(
    "--run-dir", type=click.Path(path_type=Path), help="Folder for the run. [default: .shapeguard/runs/NAME-N]"
)
@report_options
def command(path: Path, kind: str | None, run_dir: Path | None) -> Report:
    """Read PATH and make a run folder of it, for `report`, `plan` and all else that reads runs.

    PATH is a folder or file of TORCH_TRACE, TorchNeuron's graph_stats table, a log of the torch_xla stack, or its cache
    folder. What a log does not tell is left out, and said.
    """
    from shapeguard.importers.view import bring, importer
    from shapeguard.runs.view import report

    folder, summary = bring(path, importer(path, kind or ""), run_dir=run_dir)
    here = Path.cwd().resolve()
    shown = str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
    return report(summary, folder=shown, root=here)
