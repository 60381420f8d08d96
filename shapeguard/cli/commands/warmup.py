"""`shapeguard warmup`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shapeguard.cli.configured import Configs, config_options
from shapeguard.cli.options import report_options
from shapeguard.cli.warmup_options import warmup_options
from shapeguard.core.report import Report


@click.command(short_help="Compile all that a lock needs before a deploy, and prove it.")
@click.argument("jobs", nargs=-1)
@warmup_options
@config_options
@report_options
def command(configs: Configs, jobs: tuple[str, ...], check: Path | None, **options: Any) -> Report:
    """Make sure that every graph of the lock is compiled: pull what a remote has, run JOBS for the rest, prove it.

    Exit code 0: all is there (with --verify: and nothing compiled); 1: something is missing or failed.
    """
    from shapeguard.cli.warmup_run import check_statement, run

    if check is not None:
        return check_statement(configs, check, **options)
    return run(configs, jobs, **options)
