"""`why`: the nearest graph that is known, and exactly what differs from it. Pure functions over records.

What decides a graph is laid out as named parts: those of the toolchain, of the model, of each input, of each constant.
Two graphs differ in those parts, or, where all of them are equal, in the program itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shapeguard.cache.select import Wanted, is_model
from shapeguard.core.graphs import GraphInput, GraphRecord

PROGRAM = "program"
_COMPILER = "neuronx-cc"
_NOT_DECIDING = frozenset({"shapeguard", _COMPILER})
"""Versions that are no part of their own: the compiler is one under its name."""
_WEIGHTS = {
    "device": 64.0,
    "model": 48.0,
    "kind": 24.0,
    "target": 16.0,
    "model configuration": 12.0,
    "input": 8.0,
    "dtype": 6.0,
    "world size": 5.0,
    "tp": 5.0,
    "mode": 4.0,
    "compiler": 3.0,
    "constant": 3.0,
    "flags": 2.0,
    "stride": 2.0,
    "version": 1.0,
}
"""How far apart a difference sets two graphs; a shape counts by how far the sizes are from each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One part that differs."""

    part: str
    """`shape of input_ids`, `dtype of labels`, `flags`, `nki`."""
    wanted: str
    found: str
    """What the known graph has."""
    detail: str = ""
    """`dim 1: 512 → 640`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The known graph that is nearest to the one asked for."""

    record: GraphRecord
    differences: tuple[Difference, ...]

    @property
    def is_same(self) -> bool:
        """Whether the graph itself is known."""
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    text: str
    weight: float
    shape: tuple[int, ...] | None = None


def differences(wanted: GraphRecord, found: GraphRecord) -> tuple[Difference, ...]:
    """Give the parts in which two graphs differ, or that the program does if nothing else; empty for one graph."""
    ours, theirs = parts(wanted), parts(found)
    rows = tuple(_compare(ours, theirs))
    if not rows and wanted.key.graph != found.key.graph:
        return (Difference(part=PROGRAM, wanted=wanted.key.graph[:12], found=found.key.graph[:12]),)
    return rows


def nearest(wanted: GraphRecord, known: Iterable[GraphRecord], *, skip_same: bool = False) -> Nearest | None:
    """Give the nearest of the known graphs; `skip_same` leaves out the graph itself."""
    ours = parts(wanted)
    best: tuple[tuple[float, int, int, str], GraphRecord] | None = None
    for record in known:
        if skip_same and record.key.id == wanted.key.id:
            continue
        distance = _distance(ours, parts(record))
        rank = (distance, int(record.key.graph != wanted.key.graph), -record.last_seen, record.key.id)
        if best is None or rank < best[0]:
            best = (rank, record)
    return Nearest(record=best[1], differences=differences(wanted, best[1])) if best else None


def nearest_to(wanted: Wanted, known: Iterable[GraphRecord]) -> Nearest | None:
    """The same for what a user wrote: only what was asked for is compared."""
    best: tuple[tuple[float, int, str], GraphRecord, tuple[Difference, ...]] | None = None
    for record in known:
        ours, theirs = _asked(wanted, record)
        rank = (_distance(ours, theirs), -record.last_seen, record.key.id)
        if best is None or rank < best[0]:
            best = (rank, record, tuple(_compare(ours, theirs)))
    return Nearest(record=best[1], differences=best[2]) if best else None


def parts(record: GraphRecord) -> dict[str, _Part]:
    """Lay out what decides a graph."""
    key = record.key
    found = {
        "device": _part("device", key.device),
        "target": _part("target", key.target),
        "compiler": _part("compiler", key.compiler or _compiler(record.versions)),
        "flags": _part("flags", " ".join(key.flags)),
        "world size": _part("world size", str(record.world_size)),
        "tp": _part("tp", str(record.tp) if record.tp else ""),
        "model": _part("model", record.model.name),
        "model configuration": _part("model configuration", record.model.config),
        "kind": _part("kind", record.kind if not record.is_eager else f"{record.kind} {record.name}"),
    }
    for name, version in record.versions.items():
        if name not in _NOT_DECIDING:
            found[name] = _part("version", version)
    for each in record.inputs:
        found.update(_input_parts(each))
    for path, value in record.constants:
        found[f"constant {path}"] = _part("constant", value)
    for name, value in record.modes:
        found[f"mode {name}"] = _part("mode", value)
    return found


def _compiler(versions: Mapping[str, str]) -> str:
    return f"{_COMPILER} {versions[_COMPILER]}" if _COMPILER in versions else ""


def _part(kind: str, text: str) -> _Part:
    return _Part(text=text, weight=_WEIGHTS[kind])


def _input_parts(each: GraphInput) -> dict[str, _Part]:
    sizes = "×".join(map(str, each.shape)) or "scalar"
    return {
        f"shape of {each.path}": _Part(text=sizes, weight=_WEIGHTS["input"], shape=each.shape),
        f"dtype of {each.path}": _part("dtype", each.dtype),
        f"stride of {each.path}": _part("stride", each.layout or "contiguous"),
    }


def _compare(ours: Mapping[str, _Part], theirs: Mapping[str, _Part]) -> Iterable[Difference]:
    for name in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(name), theirs.get(name)
        if _text(one) == _text(other):
            continue
        if name.startswith(("dtype of ", "stride of ")) and (one is None or other is None):
            continue  # the input is missing on one side, which its shape says
        detail = _dims(one.shape, other.shape) if one and other and one.shape and other.shape else ""
        yield Difference(part=name, wanted=_text(one) or "none", found=_text(other) or "none", detail=detail)


def _text(part: _Part | None) -> str:
    return part.text if part else ""


def _dims(wanted: tuple[int, ...], found: tuple[int, ...]) -> str:
    if len(wanted) != len(found):
        return f"{len(found)} dimensions → {len(wanted)}"
    pairs = enumerate(zip(found, wanted, strict=True))
    return ", ".join(f"dim {dim}: {old} → {new}" for dim, (old, new) in pairs if old != new)


def _distance(ours: Mapping[str, _Part], theirs: Mapping[str, _Part]) -> float:
    total = 0.0
    for name in ours.keys() | theirs.keys():
        one, other = ours.get(name), theirs.get(name)
        if _text(one) == _text(other):
            continue
        known = one or other
        assert known is not None
        total += _apart(one, other) if one and other and one.shape is not None else known.weight
    return total


def _apart(one: _Part, other: _Part) -> float:
    """Give how far two shapes are apart: more for another rank, else by the ratio of sizes, below the weight."""
    ours, theirs = one.shape or (), other.shape or ()
    if len(ours) != len(theirs):
        return one.weight
    ratios = sum(abs(math.log2((a + 1) / (b + 1))) for a, b in zip(ours, theirs, strict=True))
    return 1.0 + min(ratios, one.weight - 1.0)


def _asked(wanted: Wanted, record: GraphRecord) -> tuple[dict[str, _Part], dict[str, _Part]]:
    """Lay out what was asked for, and the same parts of a record."""
    ours: dict[str, _Part] = {}
    theirs: dict[str, _Part] = {}
    whole = parts(record)

    def ask(name: str, kind: str, text: str, found: str) -> None:
        ours[name], theirs[name] = _part(kind, text), _part(kind, found)

    for name, asked in (("target", wanted.target), ("device", wanted.device), ("kind", wanted.kind)):
        if asked:
            ask(name, name, asked, whole[name].text)
    if wanted.tp is not None:
        ask("tp", "tp", str(wanted.tp), str(record.tp or ""))
    model, _, config = wanted.model.partition("@")
    ask("model", "model", model, model if is_model(model, record.model) else record.model.name)
    if config:
        found = record.model.config
        ask("model configuration", "model configuration", config, config if found.startswith(config) else found)
    _ask_sizes(wanted, record, ours, theirs)
    for shape in wanted.shapes:
        _ask_shape(shape, record, ours, theirs)
    return ours, theirs


def _ask_sizes(wanted: Wanted, record: GraphRecord, ours: dict[str, _Part], theirs: dict[str, _Part]) -> None:
    for name, dim, asked in (("batch", 0, wanted.batch), ("length", 1, wanted.length)):
        if asked is None:
            continue
        sizes = sorted({each.shape[dim] for each in record.inputs if len(each.shape) > 1}, key=lambda s: abs(s - asked))
        ours[name] = _Part(text=str(asked), weight=_WEIGHTS["input"], shape=(asked,))
        if sizes:
            theirs[name] = _Part(text=str(sizes[0]), weight=_WEIGHTS["input"], shape=(sizes[0],))
    if wanted.dtype:
        dtypes = list(dict.fromkeys(each.dtype for each in record.inputs))
        autocast = [value for name, value in record.modes if name == "autocast" and value != "off"]
        has = wanted.dtype in (*dtypes, *autocast)
        ours["dtype"] = _part("dtype", wanted.dtype)
        theirs["dtype"] = _part("dtype", wanted.dtype if has else ", ".join([*dtypes, *autocast]))


def _ask_shape(asked: GraphInput, record: GraphRecord, ours: dict[str, _Part], theirs: dict[str, _Part]) -> None:
    """Compare a shape with the input it names, or with the nearest where it names none."""
    named = [each for each in record.inputs if asked.path in ("", each.path, each.path.rsplit(".", 1)[-1])]
    weight = _WEIGHTS["input"]

    def apart(each: GraphInput) -> float:
        mine, its = (_Part(text="", weight=weight, shape=shape) for shape in (asked.shape, each.shape))
        return _apart(mine, its) if mine != its else 0.0

    # An unnamed shape is the batch: the first input of that many dimensions before any other.
    best = min(named, key=lambda each: (len(each.shape) != len(asked.shape), apart(each)), default=None)
    path = asked.path or (best.path if best else "any input")
    ours.update(_input_parts(GraphInput(path=path, shape=asked.shape, dtype=asked.dtype)))
    ours.pop(f"stride of {path}")
    if best is not None:
        theirs.update(_input_parts(GraphInput(path=path, shape=best.shape, dtype=best.dtype)))
        theirs.pop(f"stride of {path}")
    if not asked.dtype:
        ours.pop(f"dtype of {path}")
        theirs.pop(f"dtype of {path}", None)
