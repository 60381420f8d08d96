"""Joins the locks of two branches: what either added is in, what either removed is out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shapeguard.core.errors import LockError
from shapeguard.lock.values import Id, Lock, LockedGraph, LockedJob

TOOLCHAINS = "run `shapeguard lock --upgrade` on the merged code"


def merge(base: Lock, ours: Lock, theirs: Lock) -> Lock:
    """Give the lock of a merge; `LockError` where the branches were locked with different toolchains."""
    toolchain = _toolchain(base, ours, theirs)
    jobs = {}
    for name in _names(base.jobs, ours.jobs, theirs.jobs):
        jobs[name] = _job(base.jobs.get(name), ours.jobs.get(name), theirs.jobs.get(name))
    graphs: dict[Id, LockedGraph] = {}
    for key in sorted({*ours.graphs, *theirs.graphs}):
        found = _graph(base.graphs.get(key), ours.graphs.get(key), theirs.graphs.get(key), jobs)
        if found is not None:
            graphs[key] = found
    return Lock(toolchain=toolchain, jobs=jobs, graphs=graphs)


def _toolchain(base: Lock, ours: Lock, theirs: Lock) -> dict[str, str]:
    if ours.toolchain == theirs.toolchain or not ours.toolchain or not theirs.toolchain:
        return dict(ours.toolchain or theirs.toolchain)
    differing = sorted(
        name for name in {*ours.toolchain, *theirs.toolchain} if ours.toolchain.get(name) != theirs.toolchain.get(name)
    )
    shown = ", ".join(f"{n} {ours.toolchain.get(n, 'none')} and {theirs.toolchain.get(n, 'none')}" for n in differing)
    raise LockError(f"the branches were locked with different toolchains: {shown}", hint=TOOLCHAINS)


def _names(base: Iterable[str], ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    return sorted(_rows(set(base), set(ours), set(theirs)))


def _rows(base: set[str], ours: set[str], theirs: set[str]) -> set[str]:
    """Merge sets: what one of the sides removed is out, all else that a side has is in."""
    return (ours | theirs) - (base - ours) - (base - theirs)


def _job(base: LockedJob | None, ours: LockedJob | None, theirs: LockedJob | None) -> LockedJob:
    if ours is None or theirs is None:
        found = ours or theirs
        assert found is not None, "a name that no side has was merged"
        return found
    if ours == theirs:
        return ours
    was = base or LockedJob()
    changed = theirs if _settings(ours) == _settings(was) else ours
    both = _settings(was) not in (_settings(ours), _settings(theirs)) and _settings(ours) != _settings(theirs)
    return replace(
        changed,
        # Unknown, so that the next check asks for a new lock.
        settings="" if both else changed.settings,
        eager=tuple(sorted(_rows(set(was.eager), set(ours.eager), set(theirs.eager)))),
        fallbacks=tuple(sorted(_rows(set(was.fallbacks), set(ours.fallbacks), set(theirs.fallbacks)))),
    )


def _settings(job: LockedJob) -> tuple[str, str, int]:
    return job.settings, job.target, job.world


def _graph(
    base: LockedGraph | None, ours: LockedGraph | None, theirs: LockedGraph | None, jobs: Iterable[str]
) -> LockedGraph | None:
    sides = [set(graph.jobs) if graph else set() for graph in (base, ours, theirs)]
    owners = _rows(*sides) & set(jobs)
    lead = ours or theirs
    if not owners or lead is None:
        return None
    late = _rows(*(set(graph.late) if graph else set() for graph in (base, ours, theirs)))
    return replace(lead, jobs=tuple(sorted(owners)), late=tuple(sorted(late & owners)))
