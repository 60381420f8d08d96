"""Looks on while a program of this process runs: which graphs compiled since a moment, and why.

In a traced process (or under `pytest --shapeguard`) the lines that the process writes are read again. Anywhere else, on
real hardware too, torch's own record of compiles is: it knows graphs and the guard that failed, not eager operators.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from shapeguard.checks.words import what_changed, what_to_do
from shapeguard.core.events import Outcome
from shapeguard.lock.observe import inputs_of
from shapeguard.runs.causes import Cause, explain
from shapeguard.runs.guards import from_guard
from shapeguard.runs.lines import Reader
from shapeguard.runs.tracks import text_of
from shapeguard.runs.values import Compile, Process

_NEW = (Outcome.COMPILED, Outcome.DISK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One graph, or one eager signature, that compiled."""

    name: str
    """What it is: `forward Net input_ids 4×8 int64`."""
    number: int
    """Counts the compiles of the process."""
    region: int = 0
    phase: str = "train"
    phase_step: int = 0
    """0 where steps are not known."""
    why: str = ""
    """The cause, where it is known without looking further."""


@dataclass(slots=True)
class Seen:
    """What compiled in a window."""

    graphs: list[Compiled] = field(default_factory=list)
    eager: list[Compiled] = field(default_factory=list)


class Watch(Protocol):
    """Tells what compiled."""

    counts_eager: bool

    def look(self) -> Seen:
        """Give what compiled since the watch began or was last looked at."""

    def causes(self, graphs: Sequence[Compiled]) -> list[str]:
        """Give one line a graph: what it is, what changed, the line and what to do."""


def begin(environment: Mapping[str, str] = os.environ) -> Watch:
    """Begin to watch this process."""
    folder = environment.get("SHAPEGUARD_RUN_DIR", "")
    if folder and Path(folder).is_dir() and "torch_neuronx" in sys.modules:
        return EventWatch(Path(folder) / f"rank-{int(environment.get('RANK') or 0)}.pid-{os.getpid()}.jsonl")
    return TorchWatch()


class EventWatch:
    """Reads the event file of this process."""

    counts_eager = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._base: dict[str, int] = {}
        self._first = 0

    def look(self) -> Seen:
        """Read the lines written since."""
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        self._offset += len(data)
        seen = Seen()
        process = Reader().process(data.splitlines(keepends=True))
        for phase, step in process.phases.items():
            self._base.setdefault(phase, step - _steps(process, data, phase))
        if process.compiles and not self._first:
            self._first = process.compiles[0].n
        for compile in process.compiles:
            if compile.outcome in _NEW and compile.key and compile.kind != "region":
                (seen.graphs if compile.is_graph else seen.eager).append(self._compiled(compile))
        return seen

    def _compiled(self, compile: Compile) -> Compiled:
        base = self._base.setdefault(compile.phase, max(compile.phase_step - 1, 0))
        return Compiled(
            name=f"{compile.kind} {compile.model}" if compile.is_graph else compile.name,
            number=compile.n,
            region=compile.region if compile.is_graph else 0,
            phase=compile.phase,
            phase_step=compile.phase_step - base,
        )

    def causes(self, graphs: Sequence[Compiled]) -> list[str]:
        """Explain by what came before in the window; where nothing did, by all that the process did before."""
        with self._path.open("rb") as stream:
            process = Reader().process(stream)
        window = replace(process, compiles=[compile for compile in process.compiles if compile.n >= self._first])
        found = (*explain(window).causes, *explain(process).causes)
        by_number = {compile.n: compile for compile in process.compiles}
        regions = {compile.region: compile for compile in process.compiles if compile.kind == "region"}
        lines = []
        for graph in graphs:
            compile = by_number[graph.number]
            region = regions.get(compile.region, compile) if compile.is_graph else compile
            lines.append(f"{_named(compile, region)}: {_because(compile, region, found)}")
        return lines


def _steps(process: Process, data: bytes, phase: str) -> int:
    """Give how many steps of a phase began in the window."""
    lines = (line for line in data.splitlines() if b'"type":"step"' in line)
    return sum(f'"phase":"{phase}"'.encode() in line for line in lines)


def _named(compile: Compile, region: Compile) -> str:
    inputs = inputs_of(region.inputs or compile.inputs)
    shown = ", ".join(inputs[:3]) + (f" and {len(inputs) - 3} more" if len(inputs) > 3 else "")
    what = f"{compile.kind} {compile.model}".strip() if compile.is_graph else compile.name
    return f"{what}({shown})" if not compile.is_graph else f"{what} {shown}".strip()


def _because(compile: Compile, region: Compile, found: Iterable[Cause]) -> str:
    site = compile.site or region.site
    at = f" at {site}" if site else ""
    cause = next((each for each in found if _is_of(compile, each)), None)
    if cause is None:
        return f"compiled for the first time{at}"
    where = f" at {cause.site}" if cause.site else at
    return f"{what_changed(cause)}{where}; {what_to_do(cause)}"


def _is_of(compile: Compile, cause: Cause) -> bool:
    if compile.is_graph:
        return compile.region in cause.regions
    return compile.name in dict(cause.ops) and cause.first_step <= compile.step <= cause.last_step


class TorchWatch:
    """Reads torch's record of compiles, which every device has."""

    counts_eager = False

    def __init__(self) -> None:
        self._known = len(self._records())
        self._last = self._records()[-1:]
        self._number = 0

    def look(self) -> Seen:
        """Give what was recorded since."""
        records = self._records()
        # The record is a ring: the last one known says where the new ones begin.
        known = self._last[0] if self._last else None
        at = next((index + 1 for index in range(len(records) - 1, -1, -1) if records[index] is known), 0)
        self._last = records[-1:]
        return Seen(graphs=[self._compiled(record) for record in records[at:] if _has_graph(record)])

    def causes(self, graphs: Sequence[Compiled]) -> list[str]:
        """Give what the records say."""
        return [f"{graph.name}: {graph.why}" for graph in graphs]

    def _records(self) -> list[Any]:
        if "torch" not in sys.modules:
            return []
        return list(import_module("torch._dynamo.utils").get_compilation_metrics())

    def _compiled(self, record: Any) -> Compiled:
        self._number += 1
        is_forward = getattr(record, "is_forward", True) is not False
        path = str(record.co_filename or "")
        where = f"{_shown(path)}:{record.co_firstlineno}" if path and "site-packages" not in path else ""
        reason = str(getattr(record, "recompile_reason", None) or "")
        name = " of ".join(filter(None, ["graph" if is_forward else "backward", str(record.co_name or "")]))
        what = text_of(from_guard(reason)).strip(" →") if reason else "compiled for the first time"
        return Compiled(name=name, number=self._number, why=f"{what} at {where}" if where else what)


def _has_graph(record: Any) -> bool:
    failed = getattr(record, "fail_type", None)
    return not failed and (getattr(record, "is_forward", True) is False or bool(getattr(record, "graph_op_count", 0)))


def _shown(path: str) -> str:
    inside = os.path.relpath(path)
    return path if inside.startswith("..") else inside
