"""Eager operators whose signatures grow in number: which size runs through them, and since when.

A call inside a library has no line of its own, so calls are told apart by their signature: two keys of one operator
belong to one family when they are equal once a single size is taken out of both. Keys that come at the same step are
different calls (a wide layer and a narrow one), not one call that compiled again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from shapeguard.runs.compare import Position, number
from shapeguard.runs.series import Value, whole
from shapeguard.runs.values import Compile

NEAR = 8
"""From this size on a size one off (`out` of a `cat`) counts as the same; below it would take in batch sizes."""
_NUMBER = re.compile(r"\d+")
_MASKED = -(10**9)
"""Stands for the size that was taken out, in the middle of numbers no size has."""


@dataclass(slots=True, kw_only=True)
class Family:
    """The keys of one call that differ in one size or one constant."""

    op: str
    at: Position
    seen: dict[Value, None] = field(default_factory=dict)
    events: list[Compile] = field(default_factory=list)
    """All of them, the first too."""

    @property
    def values(self) -> list[Value]:
        """Give the distinct values in the order seen."""
        return list(self.seen)

    @property
    def steps(self) -> frozenset[int]:
        """Give the steps at which it compiled again."""
        return frozenset(event.step for event in self.events[1:])

    @property
    def grows(self) -> int:
        """Give by how much it grows each time, 0 where it doesn't."""
        numbers = whole(self.values) or []
        steps = Counter(b - a for a, b in pairwise(numbers) if b > a)
        step, times = steps.most_common(1)[0] if steps else (0, 0)
        # A second call of `generate()` begins anew; most values still follow the one before.
        return step if times >= 2 and times >= 0.6 * (len(numbers) - 1) else 0

    @property
    def of_cache(self) -> bool:
        """Whether the size runs through keys and values of attention, not through token ids or masks."""
        row = _row(self.events[-1], self.at)
        return row is not None and len(row[1]) >= 3 and "float" in row[0]


def families(compiles: Iterable[Compile]) -> list[Family]:
    """Give the families with two steps or more, in the order in which they began."""
    found: list[Family] = []
    for calls in _by_call(compiles).values():
        if len(calls) > 1:
            found += _families(calls)
    return sorted(found, key=lambda family: family.events[1].n)


def _by_call(compiles: Iterable[Compile]) -> dict[tuple[object, ...], list[Compile]]:
    groups: dict[tuple[object, ...], list[Compile]] = {}
    for compile in compiles:
        if compile.is_eager:
            types = tuple((row.dtype, len(row.shape)) for row in compile.inputs)
            # Two models of one class take other sizes, and neither compiles again for that.
            groups.setdefault((compile.name, compile.file_line, compile.instance, types), []).append(compile)
    return groups


def _families(calls: Sequence[Compile]) -> list[Family]:
    alone: dict[tuple[object, ...], tuple[Value, Compile]] = {}
    grouped: dict[tuple[object, ...], Family] = {}
    for call in calls:
        for key, kind, value in _masks(call):
            family = grouped.get(key)
            if family is None:
                first = alone.setdefault(key, (value, call))
                if first[1].step == call.step or first[0] == value:
                    continue
                at = _place(first[1], kind, first[0])
                family = grouped[key] = Family(op=call.name, at=at, seen={first[0]: None}, events=[first[1]])
            if value not in family.seen and family.events[-1].step != call.step:
                family.seen[value] = None
                family.events.append(call)
    for family in grouped.values():
        _unpack(family)
    return _largest(grouped.values())


def _unpack(family: Family) -> None:
    """Turn sizes that are a list (`zeros` takes one) into the one size in it that varies."""
    lists = [_sizes(value) for value in family.seen]
    if family.at.kind != "value" or len({len(sizes) for sizes in lists}) != 1:
        return
    varying = [column for column in zip(*lists, strict=True) if len(set(column)) > 1]
    if len(varying) == 1:
        dim = list(zip(*lists, strict=True)).index(varying[0])
        family.at = Position("value", f"{family.at.path}[{dim}]")
        family.seen = dict.fromkeys(varying[0])


def _sizes(value: Value) -> list[int]:
    if not isinstance(value, str) or not value.startswith(("[", "(")):
        return []
    parts = [number(part.strip()) for part in value[1:-1].split(",")]
    return [part for part in parts if isinstance(part, int)]


def _largest(found: Iterable[Family]) -> list[Family]:
    """Keep each key in its largest family only, so that nothing is counted twice."""
    kept: list[Family] = []
    taken: set[int] = set()
    for family in sorted(found, key=lambda family: (-len(family.events), family.events[0].n)):
        again = [event for event in family.events[1:] if event.n not in taken]
        if again:
            family.events = [family.events[0], *again]
            taken.update(event.n for event in again)
            kept.append(family)
    return kept


def _masks(call: Compile) -> Iterable[tuple[tuple[object, ...], str, Value]]:
    """Give the signature without one size, one constant, or the layouts, and what was taken out."""
    sizes = [size for row in call.inputs for size in row.shape]
    layouts = tuple(row.layout for row in call.inputs) if any(row.layout for row in call.inputs) else ()
    for size in set(sizes):
        near = 1 if size >= NEAR else 0
        masked = tuple([_MASKED + other - size if -near <= other - size <= near else other for other in sizes])
        constants = tuple([(path, _masked(value, size)) for path, value in call.constants])
        yield (masked, constants, _without(layouts, size) if layouts else layouts), "", size
    for path, value in call.constants:
        rest = tuple(item for item in call.constants if item[0] != path)
        yield (tuple(sizes), path, rest, layouts), path, number(value)
    if layouts:
        yield (tuple(sizes), call.constants), "layout", ", ".join(filter(None, layouts))


@lru_cache(maxsize=4096)
def _without(layouts: tuple[str, ...], size: int) -> tuple[str, ...]:
    """Take the size out of layouts, which repeat the sizes of the tensors that are cut."""
    return tuple(_NUMBER.sub(lambda found: str(_masked(found[0], size)), layout) for layout in layouts)


def _masked(value: str, size: int) -> int | str:
    """Take the size out of a constant that repeats it."""
    found = number(value)
    near = isinstance(found, int) and size >= NEAR and abs(found - size) <= 1
    return _MASKED + int(found) - size if near else value


def _place(call: Compile, kind: str, value: Value) -> Position:
    if kind == "layout":
        return Position("layout", next(row.path for row in call.inputs if row.layout))
    if kind:
        return Position("value", kind)
    row = next(row for row in call.inputs if value in row.shape)
    return Position("shape", row.path, row.shape.index(int(value)))


def _row(call: Compile, at: Position) -> tuple[str, tuple[int, ...]] | None:
    return next(((row.dtype, row.shape) for row in call.inputs if row.path == at.path), None)
