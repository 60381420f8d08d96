"""The tables of a run's report, and its causes in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shapeguard.core.report import Table, Text
from shapeguard.runs.causes import Cause
from shapeguard.runs.graphs import Graph
from shapeguard.runs.ranks import shape_text
from shapeguard.runs.series import short
from shapeguard.runs.summary import Summary
from shapeguard.runs.values import Input, Site

MOST_ROWS = 12
_NUMBER = re.compile(r"^\d+/\d+: ")
"""How Dynamo numbers the graph whose guard failed."""


def views(summary: Summary, by: str) -> list[Text | Table]:
    """Give the tables for one way of looking at the run."""
    if by == "graph":
        return _kept(graphs_table(summary.graphs), eager_table(summary))
    if by == "shape":
        return _kept(shapes_table(summary.graphs))
    if by == "rank":
        return _kept(ranks_table(summary))
    if by == "line":
        return _kept(lines_table(summary))
    tables = [graphs_table(summary.graphs, most=MOST_ROWS), eager_table(summary, most=6), fallbacks_table(summary)]
    return [*causes_text(summary.causes), *_kept(*tables)]


def _kept(*tables: Table) -> list[Text | Table]:
    return [table for table in tables if table.rows]


def causes_text(causes: Sequence[Cause]) -> list[Text]:
    """Give what changed, how often, where, and what to do: a few lines a cause."""
    if not causes:
        return []
    lines = [line for number, cause in enumerate(causes, start=1) for line in _cause(number, cause)]
    return [Text(text="\n".join(["Causes", *lines]))]


def _cause(number: int, cause: Cause) -> Iterable[str]:
    role = f" ({_ROLES.get(cause.role, cause.role)})" if cause.role else ""
    where = f"{cause.site}{role}: " if cause.site else ""
    codes = f" [{cause.found or ', '.join(cause.rules)}]" if cause.rules else ""
    yield f"  {number}. {where}{cost(cause)}"
    yield f"     {what(cause)}"
    yield f"     → {cause.advice}{codes}"


_ROLES = {
    "collate": "makes the batch",
    "tokenize": "tokenizes",
    "loader": "makes the loader",
    "move": "moves it to the device",
    "cut": "cuts by values",
    "dynamic": "marks it dynamic",
}


def cost(cause: Cause) -> str:
    """Give what a cause cost: `3 regions, 12 eager signatures`."""
    parts = [f"{cause.count} more region{'s' if cause.count != 1 else ''}"] if cause.count else []
    if cause.kind == "dynamic":
        parts = [f"{cause.count} region{'s' if cause.count != 1 else ''} not compiled"]
    if cause.kind == "limit":
        parts = [f"{cause.count} code object{'s' if cause.count != 1 else ''} from step {cause.first_step} on"]
    if cause.overlap and parts:
        parts[0] += f" ({cause.overlap} of them counted above too)"
    if cause.eager:
        parts.append(f"{cause.eager} more eager signature{'s' if cause.eager != 1 else ''}")
    return ", ".join(parts) or "nothing compiled"


def what(cause: Cause) -> str:
    """Give a cause in words: `input_ids dim 1 = 9, 13, 7: 3 lengths, no pattern`."""
    if cause.kind == "limit":
        return f"{cause.pattern} ({cause.values[0]} graphs)"
    if cause.kind == "guard":
        return f"{cause.pattern}: {_NUMBER.sub('', cause.guard)}"
    if cause.kind in ("mode", "break"):
        return cause.pattern
    if cause.kind == "layout":
        return f"{_operators(cause)}{cause.input} layout: {cause.pattern}{_also(cause)}"
    if cause.kind == "dynamic":
        return f"{cause.input} dim {cause.dim} is {cause.pattern}"
    dim = f" dim {cause.dim}" if cause.dim is not None else ""
    kind = f" {cause.kind}" if cause.kind in ("dtype", "device") else ""
    return f"{_operators(cause)}{cause.input}{dim}{kind} = {_values(cause)}{_also(cause)}"


def _values(cause: Cause) -> str:
    said = len(cause.values) == 2 and cause.pattern.startswith(f"{cause.values[0]}, then {cause.values[1]}")
    if said or not cause.pattern:
        return cause.pattern or short(cause.values)
    return f"{short(cause.values)}: {cause.pattern}"


def _operators(cause: Cause) -> str:
    if cause.count or not cause.ops:
        return ""
    named = ", ".join(op for op, _ in cause.ops[:2])
    return f"{named}{f' and {len(cause.ops) - 2} more operators' if len(cause.ops) > 2 else ''}: "


def _also(cause: Cause) -> str:
    if not cause.also:
        return ""
    rest = f" and {len(cause.also) - 3} more" if len(cause.also) > 3 else ""
    return f"; with it {', '.join(cause.also[:3])}{rest}"


def graphs_table(graphs: Sequence[Graph], *, most: int | None = None) -> Table:
    """Give one row for the graphs of a region: forward and backward stand in one."""
    rows = list(_graph_rows(graphs))
    shown = rows if most is None or len(rows) <= most + 2 else rows[:most]
    columns = ("kind", "graph", "inputs, or what changed", "times", "first step", "line")
    note = f"{len(rows) - len(shown)} more: shapeguard report RUN --by graph" if len(shown) < len(rows) else ""
    return Table(title="Graphs", columns=columns, rows=tuple(shown), right=frozenset({3, 4}), note=note)


def _graph_rows(graphs: Sequence[Graph]) -> Iterable[tuple[str, ...]]:
    pairs: dict[object, list[Graph]] = {}
    for graph in graphs:
        key = (graph.region, tuple(graph.ranks), graph.code) if graph.region else id(graph)
        pairs.setdefault(key, []).append(graph)
    for pair in pairs.values():
        first = pair[0]
        kinds = ", ".join(dict.fromkeys(graph.kind + graph.certainty for graph in pair))
        times = max(graph.count for graph in pair)
        site = str(first.site or "")
        yield kinds, f"{first.model} {first.key[:8]}".strip(), _inputs(first), str(times), str(first.first_step), site


def _inputs(graph: Graph) -> str:
    return graph.change or _rows(graph.shown)


def _rows(inputs: Sequence[Input], most: int = 3) -> str:
    named = [f"{row.path} {shape_text(row.shape)}" for row in inputs[:most]]
    return ", ".join(named) + (f" and {len(inputs) - most} more" if len(inputs) > most else "")


def eager_table(summary: Summary, *, most: int | None = None) -> Table:
    """Give the eager operators; those that grow first."""
    known = sorted(summary.operators, key=lambda row: row.growing is None)
    shown = known if most is None else known[:most]
    rows = tuple(
        (row.op + row.certainty, str(row.signatures), _growing(row.growing), str(row.site or "")) for row in shown
    )
    left = len(known) - len(shown)
    note = f"{left} more operators: shapeguard report RUN --by graph" if left else ""
    columns = ("eager operator", "signatures", "growing", "line")
    return Table(title="Eager operators", columns=columns, rows=rows, right=frozenset({1}), note=note)


def _growing(growth: dict[str, object] | None) -> str:
    if growth is None:
        return ""
    where = f"{growth['input']} dim {growth['dim']}" if growth["dim"] is not None else str(growth["input"])
    return f"{where}: {growth['from']} … {growth['to']}, by {growth['by']} each time"


def fallbacks_table(summary: Summary) -> Table:
    """Give the operators that went through the CPU."""
    rows = tuple(
        # TorchNeuron keeps names only: 0 calls are calls that nobody counted.
        (op, str(row.calls or "unknown"), _size(row.num_bytes) if row.calls else "unknown", str(row.site or ""))
        for op, row in list(summary.fallbacks.items())[:6]
    )
    left = len(summary.fallbacks) - len(rows)
    return Table(
        title="On the CPU, for want of a Neuron kernel",
        columns=("operator", "calls", "moved", "line"),
        rows=rows,
        right=frozenset({1, 2}),
        note=f"{left} more in summary.json" if left else "",
    )


def _size(num_bytes: int) -> str:
    if num_bytes < 10_000:
        return f"{num_bytes} B"
    return f"{num_bytes / 1000:.0f} kB" if num_bytes < 10_000_000 else f"{num_bytes / 1_000_000:.0f} MB"


def shapes_table(graphs: Sequence[Graph]) -> Table:
    """Give, for each input, the shapes that it came in."""
    found: dict[str, dict[str, int]] = {}
    for graph in graphs:
        if graph.kind == "backward":
            continue
        for row in graph.shown:
            shapes = found.setdefault(row.path, {})
            text = f"{shape_text(row.shape)} {row.dtype}"
            shapes[text] = shapes.get(text, 0) + 1
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    rows = tuple((path, str(len(shapes)), short(list(shapes))) for path, shapes in ordered)
    return Table(title="Shapes", columns=("input", "shapes", "in order"), rows=rows, right=frozenset({1}))


def ranks_table(summary: Summary) -> Table:
    """Give one row a rank."""
    rows = tuple(
        (str(rank), str(t.regions), str(t.neffs), str(t.eager), str(t.late_regions), str(t.late_eager))
        for rank, t in summary.ranks.items()
    )
    columns = ("rank", "regions", "to compile", "eager", "regions after warm-up", "eager after warm-up")
    return Table(title="Ranks", columns=columns, rows=rows, right=frozenset(range(6)))


def lines_table(summary: Summary) -> Table:
    """Give, for each line of the user's, what it compiled."""
    found: dict[Site, list[int]] = {}
    for graph in summary.graphs:
        if graph.site:
            found.setdefault(replace(graph.site, function=""), [0, 0])[0] += 1
    for operator in summary.operators:
        if operator.site:
            found.setdefault(replace(operator.site, function=""), [0, 0])[1] += operator.signatures
    ordered = sorted(found.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))
    rows = tuple((str(site), str(graphs), str(eager)) for site, (graphs, eager) in ordered)
    return Table(title="Lines", columns=("line", "graphs", "eager signatures"), rows=rows, right=frozenset({1, 2}))
