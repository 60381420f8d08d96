"""What differs between two locks, and putting one job's part into a lock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from shapeguard.lock.values import Id, Lock, LockedGraph, eager_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What came to one job and what went."""

    job: str
    added: tuple[LockedGraph, ...] = ()
    gone: tuple[LockedGraph, ...] = ()
    added_eager: tuple[str, ...] = ()
    """Lines of eager signatures."""
    gone_eager: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the same may compile."""
        return not (self.added or self.gone or self.added_eager or self.gone_eager)


def difference(old: Lock, new: Lock, job: str) -> Difference:
    """Compare what two locks say of a job; graphs by their keys, whatever else is written of them."""
    before, after = old.of(job), new.of(job)
    eager_before, eager_after = _eager(old, job), _eager(new, job)
    return Difference(
        job=job,
        added=tuple(graph for name, graph in after.items() if name not in before),
        gone=tuple(graph for name, graph in before.items() if name not in after),
        added_eager=tuple(sorted(line for key, line in eager_after.items() if key not in eager_before)),
        gone_eager=tuple(sorted(line for key, line in eager_before.items() if key not in eager_after)),
    )


def _eager(lock: Lock, job: str) -> dict[str, str]:
    found = lock.jobs.get(job)
    return {line.rpartition(" ")[2]: line for line in found.eager} if found else {}


def join(lock: Lock, parts: Iterable[Lock]) -> Lock:
    """Put the jobs of other locks in place of what the lock says of them."""
    for part in parts:
        kept = without(lock, part.jobs)
        graphs = dict(kept.graphs)
        for name, graph in part.graphs.items():
            graphs[name] = _both(graphs[name], graph) if name in graphs else graph
        lock = Lock(toolchain=part.toolchain or lock.toolchain, jobs={**kept.jobs, **part.jobs}, graphs=graphs)
    return lock


def _both(one: LockedGraph, other: LockedGraph) -> LockedGraph:
    # What describes a graph that two jobs share comes from one of them by rule, not by the order they were traced in.
    lead = min(one, other, key=lambda graph: min(graph.jobs))
    return replace(
        lead,
        jobs=tuple(sorted({*one.jobs, *other.jobs})),
        late=tuple(sorted({*one.late, *other.late})),
    )


def without(lock: Lock, jobs: Iterable[str]) -> Lock:
    """Take jobs out of a lock, and the graphs that only they needed."""
    gone = set(jobs)
    graphs: dict[Id, LockedGraph] = {}
    for name, graph in lock.graphs.items():
        left = tuple(job for job in graph.jobs if job not in gone)
        if left:
            late = tuple(job for job in graph.late if job not in gone)
            graphs[name] = graph if left == graph.jobs else replace(graph, jobs=left, late=late)
    kept = {name: job for name, job in lock.jobs.items() if name not in gone}
    return Lock(toolchain=lock.toolchain, jobs=kept, graphs=graphs)


def lines(old: Lock, new: Lock) -> Iterator[str]:
    """Say what a new lock changes, one line each, as a diff does."""
    for name in sorted({*old.jobs, *new.jobs}):
        found = difference(old, new, name)
        for mark, graphs, eager in (("+", found.added, found.added_eager), ("-", found.gone, found.gone_eager)):
            yield from (f"{mark} {name}: {graph}" for graph in graphs)
            yield from (f"{mark} {name}: eager {eager_text(line)}" for line in eager)
    yield from _rest(old, new)


def _rest(old: Lock, new: Lock) -> Iterator[str]:
    for name in sorted({*old.toolchain, *new.toolchain}):
        was, now = old.toolchain.get(name, "none"), new.toolchain.get(name, "none")
        if was != now:
            yield f"~ {name}: {was} → {now}"
    for name, job in sorted(new.jobs.items()):
        before = old.jobs.get(name)
        if before is not None and replace(before, eager=()) != replace(job, eager=()):
            yield f"~ {name}: what the lock says of its settings"
    changed = [graph for key, graph in new.graphs.items() if key in old.graphs and old.graphs[key] != graph]
    yield from (f"~ {graph}" for graph in changed if set(graph.jobs) == set(old.graphs[graph.id].jobs))
    yield from (f"- {name}: the whole job" for name in sorted(_gone(old.jobs, new.jobs)))


def _gone(old: Mapping[str, object], new: Mapping[str, object]) -> set[str]:
    return set(old) - set(new)
