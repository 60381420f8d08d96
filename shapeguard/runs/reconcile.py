"""A run on a device against a simulated one of the same program: what was predicted and came, and what was not.

Graphs and operators are paired by their keys, then, where a key differs, by what can be seen of them: kind or operator,
inputs, constants. That a key made on a laptop meets the one made on a device is unproven, so both figures are given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from shapeguard.core.errors import Exit, UsageError
from shapeguard.core.graphs import EAGER_KINDS
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.runs.summary import device_of
from shapeguard.runs.values import Compile, Run

SCHEMA = 1
_MOST_ROWS = 20
GRAPHS, EAGER = "graphs", "eager operators"
SEEN, ALIKE, ABSENT, UNPREDICTED = "predicted", "predicted, another key", "not seen", "not predicted"
_SHARED = ("target", "mode", "num_devices", "toolchain", "flags", "evidence", "world_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A graph or an operator's key, and which of the two runs has it."""

    status: str
    part: str
    compile: Compile


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """How far the prediction met, for graphs or for eager operators: the two are never added up."""

    part: str
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """All that either run has."""
        return sum(self.counts.values())

    @property
    def share(self) -> float:
        """What was predicted and came, of all."""
        return (self.counts[SEEN] + self.counts[ALIKE]) / self.total if self.total else 1.0

    @property
    def by_key(self) -> float:
        """The same, of those with one key on both sides."""
        return self.counts[SEEN] / self.total if self.total else 1.0


def reconcile(real: Run, simulated: Run) -> Report:
    """Give the report; exit 1 where something was predicted wrongly."""
    ours, theirs = device_of(real), device_of(simulated)
    if ours.get("kind") != "real":
        raise UsageError("the run is no run on a device", hint="shapeguard report REAL_RUN --against SIMULATED_RUN")
    if theirs.get("kind") != "simulated":
        raise UsageError("--against names no simulated run", hint="make one with shapeguard trace --device sim")
    rows = pair(_compiles(real), _compiles(simulated))
    figures = [_figure(rows, part) for part in (GRAPHS, EAGER)]
    is_met = all(row.status in (SEEN, ALIKE) for row in rows)
    return Report(
        tool="reconcile",
        sections=tuple(_sections(rows, figures, _notes(ours, theirs))),
        document=cast(Mapping[str, JSON], shareable(rows, figures, ours, theirs)),
        exit_code=Exit.CLEAN if is_met else Exit.FINDINGS,
    )


def pair(real: Sequence[Compile], simulated: Sequence[Compile]) -> list[Row]:
    """Pair by key, then by what can be seen; what is left on either side has no partner."""
    ours = {(each.kind, each.key): each for each in real}
    theirs = {(each.kind, each.key): each for each in simulated}
    rows = [Row(status=SEEN, part=_part(each), compile=each) for name, each in ours.items() if name in theirs]
    left = Counter(_looks(each) for name, each in theirs.items() if name not in ours)
    for name, each in ours.items():
        if name not in theirs:
            is_alike = left[_looks(each)] > 0
            left[_looks(each)] -= is_alike
            rows.append(Row(status=ALIKE if is_alike else UNPREDICTED, part=_part(each), compile=each))
    for name, each in theirs.items():
        if name not in ours and left[_looks(each)] > 0:
            left[_looks(each)] -= 1
            rows.append(Row(status=ABSENT, part=_part(each), compile=each))
    return rows


def _compiles(run: Run) -> list[Compile]:
    found = [compile for process in run.processes for compile in process.compiles]
    return [each for each in found if each.key and (each.is_graph or each.kind in EAGER_KINDS)]


def _part(compile: Compile) -> str:
    return EAGER if compile.kind in EAGER_KINDS else GRAPHS


def _looks(compile: Compile) -> Hashable:
    """Give what can be seen of a compile, whatever its key is."""
    inputs = tuple((each.shape, each.dtype, each.layout) for each in compile.inputs)
    name = compile.name if compile.kind in EAGER_KINDS else ""
    return compile.kind, name, inputs, compile.constants, compile.nodes


def _figure(rows: Iterable[Row], part: str) -> Conformance:
    counts = Counter(row.status for row in rows if row.part == part)
    return Conformance(part=part, counts={name: counts[name] for name in (SEEN, ALIKE, ABSENT, UNPREDICTED)})


def _notes(ours: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    notes = []
    for name in ("target", "flags"):
        if ours.get(name) != theirs.get(name):
            notes.append(
                f"{name}: {_text(theirs.get(name))} was simulated, {_text(ours.get(name))} ran: keys differ by it"
            )
    mine, other = (side.get("toolchain") for side in (ours, theirs))
    for name in ("torch", "transformers"):
        versions = [tools.get(name) if isinstance(tools, Mapping) else None for tools in (other, mine)]
        if versions[0] != versions[1]:
            notes.append(f"{name}: {versions[0]} was simulated, {versions[1]} ran: other graphs may be right")
    return notes


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value or "none")


def _sections(rows: Sequence[Row], figures: Sequence[Conformance], notes: Sequence[str]) -> Iterable[Text | Table]:
    for figure in figures:
        if figure.total:
            yield Text(text=f"conformance, {figure.part}: {figure.share:.0%} ({_counts(figure)})", strong=True)
    if not rows:
        yield Text(text="neither run compiled anything", strong=True)
    for note in notes:
        yield Text(text=note)
    for part in (GRAPHS, EAGER):
        wrong = [row for row in rows if row.part == part and row.status not in (SEEN, ALIKE)]
        if wrong:
            left = len(wrong) - _MOST_ROWS
            yield Table(
                title=f"{part.capitalize()} that differ",
                columns=("", "kind", "name", "inputs", "line"),
                rows=tuple(_cells(row) for row in wrong[:_MOST_ROWS]),
                note=f"and {left} more" if left > 0 else "",
            )


def _counts(figure: Conformance) -> str:
    return ", ".join(f"{number} {name}" for name, number in figure.counts.items() if number)


def _cells(row: Row) -> tuple[str, ...]:
    shown = ", ".join(f"{'×'.join(map(str, each.shape)) or 'scalar'} {each.dtype}" for each in row.compile.inputs[:4])
    more = f" and {len(row.compile.inputs) - 4} more" if len(row.compile.inputs) > 4 else ""
    return (
        row.status,
        row.compile.kind,
        row.compile.name or row.compile.key[:8],
        shown + more,
        str(row.compile.site or ""),
    )


def shareable(
    rows: Sequence[Row], figures: Sequence[Conformance], ours: Mapping[str, object], theirs: Mapping[str, object]
) -> dict[str, object]:
    """Give what may be sent to anybody: no path, line, model, command or name of the user's."""
    return {
        "schema": SCHEMA,
        "real": _device(ours),
        "simulated": _device(theirs),
        "conformance": {
            figure.part: {"share": round(figure.share, 4), "by_key": round(figure.by_key, 4), **figure.counts}
            for figure in figures
        },
        "rows": [_plain(row) for row in rows],
    }


def _device(facts: Mapping[str, object]) -> dict[str, object]:
    """Leave out of a device's facts what is the user's: flags may hold paths."""
    found = {name: facts[name] for name in _SHARED if name in facts}
    flags = found.get("flags")
    if isinstance(flags, (list, tuple)):
        found["flags"] = ["…" if "/" in str(flag) else flag for flag in flags]
    return found


def _plain(row: Row) -> dict[str, object]:
    compile = row.compile
    is_operator = row.part == EAGER
    value: dict[str, object] = {
        "status": row.status,
        "kind": compile.kind,
        "key": compile.key,
        "outcome": compile.outcome,
        "inputs": [{"shape": list(each.shape), "dtype": each.dtype, "layout": each.layout} for each in compile.inputs],
    }
    if is_operator:
        value |= {"op": compile.name, "constants": [list(each) for each in compile.constants]}
    else:
        value |= {"nodes": compile.nodes, "operators": dict(compile.operators), "collectives": compile.collectives}
    if compile.seconds is not None:
        value["seconds"] = compile.seconds
    # TorchNeuron's keys hold digests, shapes, types and the flags, which may hold paths.
    return value | ({"neuron": compile.neuron} if compile.neuron and "/" not in compile.neuron else {})
