"""What `lock` and `check` share on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shapeguard.cli.configured import Configs
from shapeguard.core.errors import UsageError

if TYPE_CHECKING:
    from shapeguard.checks.project import Project

Command = TypeVar("Command", bound=Callable[..., Any])


class JobRun(click.ParamType["tuple[str, Path]"]):
    """`JOB=RUN`."""

    name = "job=run"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Path]:
        """Split at the first `=`."""
        if isinstance(value, tuple):
            return value
        job, mark, path = str(value).partition("=")
        if not mark or not job or not path:
            self.fail(f"{value!r} is not JOB=RUN, for example train=.shapeguard/runs/train-1", param, ctx)
        return job, Path(path)


def run_option(command: Command) -> Command:
    """Give a command `--run`."""
    return click.option(
        "--run",
        "runs",
        type=JobRun(),
        multiple=True,
        help="Read a run that `trace` made instead of tracing the job, as JOB=RUN; repeatable.",
    )(command)


def project_of(configs: Configs) -> Project:
    """Give the project of the configuration that counts here."""
    from shapeguard.checks.judge import first_line
    from shapeguard.checks.project import Project
    from shapeguard.config.load import key_line

    here = configs.here
    root = here.root.absolute()
    file = "" if here.file is None else os.path.relpath(here.file)
    line = first_line if here.file is None else partial(key_line, here.file)
    return Project(root=root, file=file, known=here.settings.jobs, line=line)


def known_runs(runs: tuple[tuple[str, Path], ...], names: set[str]) -> dict[str, Path]:
    """Give the runs by job; refuses a job that is not looked at."""
    for job, _ in runs:
        if job not in names:
            raise UsageError(f"--run {job}=…: there is no such job here", hint=f"there are: {', '.join(sorted(names))}")
    return dict(runs)


def say(text: str) -> None:
    """Tell a person what goes on."""
    click.echo(text, err=True)
