"""`shapeguard lock`, and `shapeguard lock merge`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shapeguard.cli.configured import Configs, config_options
from shapeguard.cli.jobs import known_runs, project_of, run_option, say
from shapeguard.cli.lock_merge import merge
from shapeguard.cli.options import current_output, report_options
from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Text

if TYPE_CHECKING:
    from shapeguard.checks.locking import Locking
    from shapeguard.checks.project import Project

_MOST_LINES = 60


class Lock(click.Command):
    """`lock [JOB]...`; `lock merge` is a command of its own, which git calls in the middle of a merge."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Begin the one or the other."""
        if args[:1] == ["merge"]:
            return merge.make_context(f"{info_name} merge", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=Lock, short_help="Write down what jobs may compile; merge two such files.")
@click.argument("jobs", nargs=-1, metavar="[JOB]... | merge BASE OURS THEIRS [PATH]")
@click.option(
    "--check/--no-check", "--locked", "check", default=False, help="Write nothing; exit 1 if it would change."
)
@click.option("--frozen", is_flag=True, help="Trust the file: only read it.")
@click.option("--dry-run", is_flag=True, help="Write nothing; print what would change.")
@click.option("--upgrade", is_flag=True, help="Lock all jobs anew, with the toolchain that is here.")
@click.option("--requirements", is_flag=True, help="Print the versions it was made with, as pip reads them.")
@run_option
@config_options
@report_options
def command(
    configs: Configs,
    jobs: tuple[str, ...],
    check: bool,
    frozen: bool,
    dry_run: bool,
    upgrade: bool,
    requirements: bool,
    runs: tuple[tuple[str, Path], ...],
) -> Report:
    """Trace JOBS of the configuration, or all of them, and write what they compile into `shapeguard.lock`.

    Where CI is set nothing is written: it is as with --check. `lock merge %O %A %B %P` is git's merge driver for the
    file: it joins what two branches added and counts again.
    """
    from shapeguard.checks.locking import make, write
    from shapeguard.checks.project import is_set, read_lock

    project = project_of(configs)
    if requirements:
        return _requirements(project)
    wanted = project.jobs(jobs)
    if frozen or configs.here.settings.frozen:
        return _frozen(project, check=check, upgrade=upgrade)
    output = current_output()
    is_check = check or configs.here.settings.locked or is_set(os.environ, "CI")
    if is_check and not dry_run and not upgrade:
        read_lock(project)  # that there is none is known before minutes of tracing
    made = make(
        project,
        wanted,
        upgrade=upgrade,
        runs=known_runs(runs, {job.name for job in wanted}),
        say=(lambda text: None) if output.quiet else say,
        stream=bool(output.verbose),
        environment=os.environ,
    )
    if made.failed:
        return _failed(made)
    if not (is_check or dry_run) and (made.is_changed or not project.lock_file.exists()):
        write(project.lock_file, made.new)
    return _report(made, project, is_check=is_check, is_written=not (is_check or dry_run))


def _report(made: Locking, project: Project, *, is_check: bool, is_written: bool) -> Report:
    changes = made.changes
    left = len(changes) - _MOST_LINES
    shown = [*changes[:_MOST_LINES], *([f"… and {left} more"] if left > 0 else [])]
    graphs, eager = len(made.new.graphs), sum(len(job.eager) for job in made.new.jobs.values())
    what = f"{project.lock_file}: {_counted(graphs, 'graph')}, {_counted(eager, 'eager signature')}"
    done = "unchanged" if not made.is_changed else "written" if is_written else "would change"
    summary = [f"{what}, {done}"]
    if is_check and made.is_changed:
        summary.append("run `shapeguard lock` and commit the file")
    return Report(
        tool="lock",
        sections=(Text(text="\n".join(shown)),) if shown else (),
        document={
            "schema": 1,
            "file": project.lock_file.as_posix(),
            "graphs": graphs,
            "eager": eager,
            "changed": made.is_changed,
            "written": is_written and made.is_changed,
            "changes": changes,
        },
        summary=tuple(summary),
        exit_code=Exit.FINDINGS if is_check and made.is_changed else Exit.CLEAN,
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _failed(made: Locking) -> Report:
    """A run that did not come to its end has not shown all: nothing is written."""
    problems = tuple(
        Problem(path=os.path.relpath(ran.folder), message=f"job {ran.job.name}: {ran.why_partial}; nothing was locked")
        for ran in made.failed
    )
    code = next((ran.exit_code for ran in made.failed if ran.exit_code), int(Exit.FAILED))
    return Report(tool="lock", problems=problems, exit_code=code)


def _frozen(project: Project, *, check: bool, upgrade: bool) -> Report:
    from shapeguard.checks.project import read_lock

    if check or upgrade:
        raise click.UsageError("--frozen cannot stand beside --check or --upgrade.")
    lock = read_lock(project)
    graphs, eager = len(lock.graphs), sum(len(job.eager) for job in lock.jobs.values())
    said = f"{project.lock_file}: {_counted(graphs, 'graph')}, {_counted(eager, 'eager signature')}, trusted as it is"
    document: dict[str, JSON] = {
        "schema": 1,
        "file": project.lock_file.as_posix(),
        "graphs": graphs,
        "eager": eager,
        "changed": False,
    }
    return Report(tool="lock", document=document, summary=(said,))


def _requirements(project: Project) -> Report:
    from shapeguard.checks.project import read_lock

    found = read_lock(project).toolchain
    lines = [f"{name}=={found[name]}" for name in sorted(found) if name not in ("python", "shapeguard")]
    return Report(
        tool="lock",
        sections=(Text(text="".join(f"{line}\n" for line in lines), is_verbatim=True),),
        document={"schema": 1, "toolchain": dict(found)},
    )
