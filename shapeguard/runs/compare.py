"""What differs between two compiles of one code object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_not

from shapeguard.runs.layouts import follows
from shapeguard.runs.values import Compile, Input

ALWAYS_GUARDED = ("autocast", "grad", "inference")
"""Modes that Dynamo checks for every graph: where one differs, the graph is another one whatever its inputs are."""
ABSENT = "absent"
MANY = 32


@dataclass(frozen=True, slots=True)
class Position:
    """A place where compiles can differ."""

    kind: str
    """The class of a cause: shape, dtype, value, mode, layout, device."""
    path: str
    dim: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One difference, from the earlier compile to the later one."""

    at: Position
    old: int | str
    new: int | str


_position = lru_cache(maxsize=4096)(Position)
"""The same place is met in every comparison of a long run."""


def changes(old: Compile, new: Compile) -> tuple[Change, ...]:
    """Give the differences, inputs first, then constants, then modes; empty where nothing recorded differs."""
    found = (*_inputs(old.inputs, new.inputs), *_constants(old, new), *_modes(old, new))
    # Dynamo looks at other values where it takes another path: that it looks is not why it took it.
    return found or tuple(_unshared_constants(old, new))


def nearest(new: Compile, earlier: Sequence[Compile]) -> tuple[Compile, tuple[Change, ...]]:
    """Give the earlier compile with the fewest independent differences, the latest of equals, and the differences."""
    # Only what took the same inputs may have less than one difference.
    enough = 0 if any(old.inputs is new.inputs for old in earlier[-MANY:]) else 1
    best = earlier[-1], changes(earlier[-1], new)
    weight = _weight(best[1])
    if weight > enough:
        for old in _candidates(new, earlier):
            found = changes(old, new)
            size = _weight(found)
            if size < weight:
                best, weight = (old, found), size
            if weight <= enough:
                break
    return best


def _weight(found: Iterable[Change]) -> int:
    return len({(change.at.kind, change.old, change.new) for change in found})


def _candidates(new: Compile, earlier: Sequence[Compile]) -> Iterable[Compile]:
    """Give what to compare with, the latest first; of very many (a raised recompile limit) those alike at a glance."""
    if len(earlier) <= MANY:
        return reversed(earlier[:-1])
    window = (*reversed(earlier[-12:]), *earlier[:4])
    return sorted(window, key=lambda old: sum(map(is_not, old.inputs, new.inputs)))[:4]


def value_at(compile: Compile, at: Position) -> int | str | None:
    """Give what a compile has at a position; None where it has no such place."""
    if at.kind == "mode" and not at.path.startswith("grad of "):
        return dict(compile.modes).get(at.path)
    if at.kind == "value":
        found = dict(compile.constants).get(at.path)
        return number(found) if found is not None else lengths(compile.inputs).get(at.path)
    name = at.path.removeprefix("grad of ")
    row = next((row for row in compile.inputs if row.path == name), None)
    return None if row is None else _of(row, at)


def number(text: str) -> int | str:
    """Give a whole number as one, and any other constant as its text."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text


def lengths(inputs: Iterable[Input]) -> dict[str, int]:
    """Give the length of every list among the inputs: `group[0]`, `group[1]` make `group` of 2."""
    found: dict[str, set[str]] = {}
    for row in inputs:
        for match in re.finditer(r"\[(\d+)\]", row.path):
            found.setdefault(row.path[: match.start()], set()).add(match[1])
    return {base: len(indices) for base, indices in found.items()}


def _of(row: Input, at: Position) -> int | str | None:
    if at.kind == "shape":
        if at.dim is None:
            return len(row.shape)
        return row.shape[at.dim] if at.dim < len(row.shape) else None
    if at.kind == "mode":
        return None if row.grad is None else str(row.grad)
    values: Mapping[str, str] = {
        "dtype": row.dtype,
        "layout": row.layout or "contiguous",
        "device": row.device or "neuron",
    }
    return values.get(at.kind)


def _inputs(old: tuple[Input, ...], new: tuple[Input, ...]) -> Iterable[Change]:
    if old is new:
        return
    pairs = [(before, after) for before, after in zip(old, new, strict=False) if before is not after]
    if len(old) == len(new) and all(before.path == after.path for before, after in pairs):
        # Nearly always: the same inputs in the same order, and the equal ones are one object.
        for before, after in pairs:
            yield from _rows(before, after)
        return
    yield from _by_path(old, new)


def _by_path(old: tuple[Input, ...], new: tuple[Input, ...]) -> Iterable[Change]:
    before = {row.path: row for row in old}
    after = {row.path: row for row in new}
    gone = before.keys() ^ after.keys()
    yield from _missing(old, new, gone)
    for path, row in after.items():
        if path not in gone and before[path] is not row:
            yield from _rows(before[path], row)


def _missing(old: tuple[Input, ...], new: tuple[Input, ...], gone: set[str]) -> Iterable[Change]:
    if not gone:
        return
    before, after = lengths(old), lengths(new)
    lists = [
        base for base in {**before, **after} if base and before.get(base) != after.get(base) and _covers(base, gone)
    ]
    for base in lists:
        yield Change(Position("value", base), before.get(base, 0), after.get(base, 0))
    known = {row.path for row in old}
    for row in (*old, *new):
        if row.path in gone and not any(row.path.startswith(f"{base}[") for base in lists):
            here = row.path in known
            there = ABSENT if here else "given"
            yield Change(Position("value", row.path), "given" if here else ABSENT, there)


def _covers(base: str, gone: set[str]) -> bool:
    return any(path.startswith(f"{base}[") for path in gone)


def _rows(old: Input, new: Input) -> Iterable[Change]:
    path = new.path
    if len(old.shape) != len(new.shape):
        yield Change(_position("shape", path, None), len(old.shape), len(new.shape))
    elif old.shape != new.shape:
        for dim, (before, after) in enumerate(zip(old.shape, new.shape, strict=True)):
            if before != after:
                yield Change(_position("shape", path, dim), before, after)
    if old.dtype != new.dtype:
        yield Change(Position("dtype", path), old.dtype, new.dtype)
    if old.layout != new.layout and not follows(old, new):
        yield Change(Position("layout", path), old.layout or "contiguous", new.layout or "contiguous")
    if old.device != new.device:
        yield Change(Position("device", path), old.device or "neuron", new.device or "neuron")
    if old.grad is not None and new.grad is not None and old.grad != new.grad:
        yield Change(Position("mode", f"grad of {path}"), str(old.grad), str(new.grad))


def _constants(old: Compile, new: Compile) -> Iterable[Change]:
    if old.constants is new.constants:
        return
    before = dict(old.constants)
    for path, value in new.constants:
        if before.get(path, value) != value:
            yield Change(Position("value", path), number(before[path]), number(value))


def _unshared_constants(old: Compile, new: Compile) -> Iterable[Change]:
    before, after = dict(old.constants), dict(new.constants)
    for path in sorted(before.keys() ^ after.keys()):
        yield Change(Position("value", path), number(before.get(path, ABSENT)), number(after.get(path, ABSENT)))


def _modes(old: Compile, new: Compile) -> Iterable[Change]:
    before, after = dict(old.modes), dict(new.modes)
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Change(Position("mode", name), before[name], after[name])
