"""`check`: the jobs against the lock and their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

from shapeguard.checks.job import Job
from shapeguard.checks.judge import STALE, Verdict, finding, judge, judge_alone, shown, stale
from shapeguard.checks.project import Project, demand_toolchain, here, read_lock
from shapeguard.checks.run import Ran, Say, read, run
from shapeguard.core.errors import LockError
from shapeguard.lock.values import Lock

Progress = Callable[[Job], Ran]


def check(
    project: Project,
    jobs: Sequence[Job],
    *,
    runs: Mapping[str, Path],
    say: Say,
    stream: bool,
    environment: Mapping[str, str],
) -> list[tuple[Verdict, int]]:
    """Trace the jobs (or read runs that are there) and judge them, each with its program's exit code."""
    lock = read_lock(project)
    if any(job.name not in runs for job in jobs) and "torch" in here():
        # Before minutes of tracing; a program with a Python of its own is looked at after it ran.
        demand_toolchain(lock, here(), project.lock_file)
    verdicts = []
    for job in jobs:
        ready = runs.get(job.name)
        ran = read(job, ready) if ready else run(job, say=say, stream=stream, environment=environment)
        demand_toolchain(lock, ran.observed.toolchain, project.lock_file)
        verdicts.append((_verdict(ran, lock, project), ran.exit_code))
    return verdicts


def _verdict(ran: Ran, lock: Lock, project: Project) -> Verdict:
    return judge(ran, lock, project.place, today=date.today())


def check_static(project: Project, jobs: Sequence[Job], *, is_all: bool) -> list[Verdict]:
    """Judge the lock and the configuration alone: no torch, nothing is run."""
    lock = read_lock(project)
    verdicts = [judge_alone(job, lock, project.place, today=date.today()) for job in jobs]
    left = sorted(set(lock.jobs) - set(project.known)) if is_all else []
    if left:
        said = f"the lock has job {', '.join(left)}, which the configuration has not: run `shapeguard lock`"
        found = finding(STALE, said, path=shown(project.lock_file))
        verdicts.append(Verdict(job=left[0], rows=(), findings=(found,)))
    return verdicts


def unlocked(project: Project, jobs: Sequence[Job]) -> list[Verdict]:
    """Give the jobs that cannot be compared, since the lock does not know them or their settings."""
    try:
        lock = read_lock(project)
    except LockError:
        return []
    return [
        Verdict(job=job.name, rows=(), findings=tuple(stale(job, lock, project.place)))
        for job in jobs
        if any(stale(job, lock, project.place))
    ]
