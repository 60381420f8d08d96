"""`lock`: traces jobs and puts what they need into the lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapeguard.checks.job import Job
from shapeguard.checks.project import Project, demand_toolchain, here
from shapeguard.checks.run import Ran, Say, read, run
from shapeguard.core.errors import LockError, UsageError
from shapeguard.core.files import replace_file
from shapeguard.lock.change import join, lines, without
from shapeguard.lock.read import demand_file
from shapeguard.lock.read import read as read_lock
from shapeguard.lock.values import Lock
from shapeguard.lock.write import text


@dataclass(frozen=True, slots=True, kw_only=True)
class Locking:
    """What a lock was and what it is to be."""

    old: Lock
    new: Lock
    failed: tuple[Ran, ...] = ()
    """Runs that did not come to their end: nothing is written then."""

    @property
    def changes(self) -> list[str]:
        """Say what changes, one line each."""
        return list(lines(self.old, self.new))

    @property
    def is_changed(self) -> bool:
        """Whether the content differs, whatever the bytes are."""
        return self.old != self.new


def make(
    project: Project,
    jobs: Sequence[Job],
    *,
    upgrade: bool,
    runs: Mapping[str, Path],
    say: Say,
    stream: bool,
    environment: Mapping[str, str],
) -> Locking:
    """Trace the jobs and give the lock with what they need."""
    old = _old(project.lock_file, upgrade=upgrade)
    if not upgrade and "torch" in here() and any(job.name not in runs for job in jobs):
        demand_toolchain(old, here(), project.lock_file)
    is_all = len(jobs) == len(project.known)
    if upgrade and not is_all:
        raise UsageError(
            "--upgrade locks all jobs anew: their graphs have other keys", hint="leave out the jobs' names"
        )
    ran = [
        read(job, runs[job.name]) if job.name in runs else run(job, say=say, stream=stream, environment=environment)
        for job in jobs
    ]
    failed = tuple(each for each in ran if each.why_partial)
    start = Lock() if is_all else without(old, set(old.jobs) - set(project.known))
    if not upgrade:
        for each in ran:
            demand_toolchain(old, each.observed.toolchain, project.lock_file)
    parts = [each.observed.locked(each.job.locked) for each in ran if not each.why_partial]
    _same_toolchain(parts)
    return Locking(old=old, new=join(start, parts), failed=failed)


def _old(file: Path, *, upgrade: bool) -> Lock:
    if not file.exists():
        return Lock()
    demand_file(file)
    try:
        return read_lock(file)
    except LockError:
        if upgrade:
            return Lock()
        raise


def _same_toolchain(parts: Sequence[Lock]) -> None:
    for part in parts[1:]:
        if part.toolchain != parts[0].toolchain:
            names = f"{next(iter(parts[0].jobs))!r} and {next(iter(part.jobs))!r}"
            raise LockError(f"jobs {names} run with different toolchains", hint="give each its own folder and lock")


def write(file: Path, lock: Lock) -> None:
    """Write a lock at once."""
    try:
        replace_file(file, text(lock).encode())
    except OSError as error:
        raise LockError(f"cannot write {file}: {error.strerror or error}") from error
