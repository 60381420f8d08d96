"""`shapeguard check`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click

from shapeguard.cli.configured import Configs, config_options
from shapeguard.cli.jobs import known_runs, project_of, run_option, say
from shapeguard.cli.options import current_output, report_options
from shapeguard.core.report import Report


@click.command(short_help="Compare what jobs compile with the lock and their budgets.")
@click.argument("jobs", nargs=-1)
@click.option("--static", is_flag=True, help="Look at lock and configuration only: runs nothing, needs no torch.")
@click.option("--why", metavar="NAME", help="List what a row of the table counts, and the cause of what is new.")
@run_option
@config_options
@report_options
def command(
    configs: Configs, jobs: tuple[str, ...], static: bool, why: str | None, runs: tuple[tuple[str, Path], ...]
) -> Report:
    """Trace JOBS of the configuration, or all of them, and compare with `shapeguard.lock` and the budgets.

    Exit code 0: nothing new compiles and no limit is passed; 1: it does; a program that fails gives its own.
    """
    from shapeguard.checks import view
    from shapeguard.checks.check import check, check_static, unlocked

    project = project_of(configs)
    wanted = project.jobs(jobs)
    if static and runs:
        raise click.UsageError("--run cannot stand beside --static.")
    if static:
        verdicts = check_static(project, wanted, is_all=not jobs)
        return view.why(verdicts, why) if why else view.report(verdicts, is_static=True)
    if stale := unlocked(project, wanted):
        return view.report(stale)
    output = current_output()
    judged = check(
        project,
        wanted,
        runs=known_runs(runs, {job.name for job in wanted}),
        say=(lambda text: None) if output.quiet else say,
        stream=bool(output.verbose),
        environment=os.environ,
    )
    verdicts = [verdict for verdict, _ in judged]
    found = view.why(verdicts, why) if why else view.report(verdicts)
    # A program's own exit code wins: what it says comes before what it compiles.
    own = next((code for _, code in judged if code), 0)
    return replace(found, exit_code=own) if own else found
