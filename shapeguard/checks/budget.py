"""Counts what a job may compile against its limits; pure, and the same for a run and for a lock alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from itertools import chain

from shapeguard.checks.settings import Budget, JobSettings, PartBudget, Waiver
from shapeguard.core.cost import compile_s
from shapeguard.lock.values import Lock, LockedGraph, eager_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One limit of a job, and how it stands."""

    job: str
    name: str
    limit: float | None
    now: float
    before: float | None
    """The same count in the lock; None where the lock does not have the job."""
    status: str
    """`ok`, `over`, `waived`, `expired`, `off`; empty where there is no limit."""
    level: str
    note: str = ""
    counted: tuple[str, ...] = ()
    """What was counted, one text each."""

    @property
    def is_over(self) -> bool:
        """Whether the limit is passed and nothing allows it."""
        return self.status in ("over", "expired")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    name: str
    limit: float | None
    level: str
    counted: tuple[str, ...]
    now: float
    before: float | None


def rows(job: str, settings: JobSettings, now: Lock, *, locked: Lock | None, today: date) -> list[Row]:
    """Give a row for each thing that is counted, with its limit or without one."""
    known = locked if locked is not None and job in locked.jobs else None
    waivers = {waiver.limit: waiver for waiver in settings.waivers}
    counts = list(_counts(job, settings.budget, now, known))
    return [_row(job, count, waivers.get(count.name), today) for count in counts]


def level(budget: Budget, name: str) -> str:
    """Give what passing a limit of that name means."""
    return budget.levels.get(name, budget.level)


def _counts(job: str, budget: Budget, now: Lock, before: Lock | None) -> Iterator[_Count]:
    figures = _figures(now, job)
    earlier: Mapping[str, Sequence[str]] = _figures(before, job) if before is not None else {}
    limits = (
        ("graphs", budget.graphs),
        ("eager", budget.eager),
        ("after-warmup", budget.after_warmup),
        ("fallbacks", budget.fallbacks),
    )
    for name, limit in limits:
        counted = figures[name]
        yield _Count(
            name=name,
            limit=limit,
            level=level(budget, name),
            counted=tuple(counted),
            now=len(counted),
            before=len(earlier[name]) if before is not None else None,
        )
    if budget.compile_minutes is not None:
        yield _Count(
            name="compile-minutes",
            limit=budget.compile_minutes,
            level=level(budget, "compile-minutes"),
            counted=tuple(f"{compile_s(g.nodes) / 60:.1f} {g}" for g in now.of(job).values()),
            now=_minutes(now, job),
            before=_minutes(before, job) if before is not None else None,
        )
    yield from chain.from_iterable(_part(part, budget, job, now, before) for part in budget.match)


def _figures(lock: Lock, job: str) -> dict[str, list[str]]:
    graphs = lock.of(job).values()
    found = lock.jobs.get(job)
    return {
        "graphs": sorted(str(graph) for graph in graphs),
        "eager": sorted(eager_text(line) for line in found.eager) if found else [],
        "after-warmup": sorted(str(graph) for graph in graphs if job in graph.late),
        "fallbacks": list(found.fallbacks) if found else [],
    }


def _minutes(lock: Lock, job: str) -> float:
    return round(sum(compile_s(graph.nodes) for graph in lock.of(job).values()) / 60, 1)


def _part(part: PartBudget, budget: Budget, job: str, now: Lock, before: Lock | None) -> Iterator[_Count]:
    counted = _matching(part, now.of(job).values())
    earlier = _matching(part, before.of(job).values()) if before is not None else None
    of_level = part.level or level(budget, part.name)
    if part.graphs is not None:
        yield _Count(
            name=part.name,
            limit=part.graphs,
            level=of_level,
            counted=tuple(sorted(str(graph) for graph in counted)),
            now=len(counted),
            before=len(earlier) if earlier is not None else None,
        )
    if part.shapes is not None:
        shapes = _shapes(part, counted)
        yield _Count(
            name=f"{part.name} shapes" if part.graphs is not None else part.name,
            limit=part.shapes,
            level=of_level,
            counted=tuple(shapes),
            now=len(shapes),
            before=len(_shapes(part, earlier)) if earlier is not None else None,
        )


def _matching(part: PartBudget, graphs: Iterable[LockedGraph]) -> list[LockedGraph]:
    return [
        graph
        for graph in graphs
        if fnmatchcase(f"{graph.kind} {graph.model}", part.graph)
        and (not part.input or any(fnmatchcase(_path(row), part.input) for row in graph.inputs))
    ]


def _shapes(part: PartBudget, graphs: Iterable[LockedGraph]) -> list[str]:
    return sorted({row for graph in graphs for row in graph.inputs if fnmatchcase(_path(row), part.input)})


def _path(row: str) -> str:
    return row.partition(" ")[0]


def _row(job: str, count: _Count, waiver: Waiver | None, today: date) -> Row:
    status, note = _status(count, waiver, today)
    return Row(
        job=job,
        name=count.name,
        limit=count.limit,
        now=count.now,
        before=count.before,
        status=status,
        level=count.level,
        note=note,
        counted=count.counted,
    )


def _status(count: _Count, waiver: Waiver | None, today: date) -> tuple[str, str]:
    if count.limit is None:
        return "", ""
    if count.level == "off":
        return "off", ""
    if count.now <= count.limit:
        return "ok", ""
    if waiver is None:
        return "over", ""
    if waiver.until < today:
        return "expired", f"its waiver ended on {waiver.until} ({waiver.reason})"
    if waiver.allow is not None and count.now > waiver.allow:
        return "over", f"its waiver allows {waiver.allow} ({waiver.reason})"
    return "waived", f"waived until {waiver.until}: {waiver.reason}"
