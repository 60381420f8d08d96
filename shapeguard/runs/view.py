"""A summary as the sections of a report: the verdict first, what nothing else matters beside before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.runs.causes import Cause
from shapeguard.runs.graphs import Graph
from shapeguard.runs.ranks import Divergence, shape_text
from shapeguard.runs.series import short
from shapeguard.runs.summary import Summary, Trouble, document
from shapeguard.runs.values import Input, Placement, Site

MOST_ROWS = 12
SIMULATED = "Simulated: counted on this machine after what is known of TorchNeuron, never run on Trainium."


def report(summary: Summary, *, folder: str, by: str = "cause") -> Report:
    """Give the report of a run for people and for other programs."""
    sections: list[Text | Table] = [*_first(summary)]
    if summary.graphs or summary.operators:
        sections.append(Text(text=_figures(summary)))
    sections += views(summary, by)
    if summary.tokens[1]:
        sections.append(Text(text=_padding(summary.tokens)))
    if summary.device.get("kind") != "real":
        sections.append(Text(text=SIMULATED))
    sections.append(Text(text=f"run: {folder}"))
    return Report(
        tool="trace",
        sections=tuple(sections),
        problems=tuple(_problem(trouble) for trouble in summary.troubles),
        document=_json(summary),
        exit_code=Exit.CLEAN,
    )


def _json(summary: Summary) -> Mapping[str, JSON]:
    return cast(Mapping[str, JSON], document(summary))


def _first(summary: Summary) -> Iterable[Text]:
    for row in summary.placements:
        yield Text(text=_placement(row), strong=True)
    if summary.divergence:
        yield Text(text=_divergence(summary.divergence), strong=True)
    yield Text(text=summary.steadiness.verdict, strong=True)
    if summary.ended.signal:
        yield Text(text=f"the program was ended by {summary.ended.signal}: this is what was seen until then")
    elif summary.ended.exit_code:
        yield Text(text=f"the program ended with exit code {summary.ended.exit_code}: this is what was seen until then")


def _placement(row: Placement) -> str:
    model = row.model or "the model"
    where = f"; loaded so at {row.loaded}" if row.loaded else f"; its forward ran at {row.site}" if row.site else ""
    how = f" ({row.how})" if row.how and row.how != "default" else ""
    return f"{model} ran on the CPU: nothing of it would run on Neuron{how}{where}"


def _divergence(found: Divergence) -> str:
    parts = []
    for row in found.ranks:
        at = f" at {row.site}" if row.site else ""
        parts.append(f"rank {row.rank} compiled {', '.join(row.shapes) or 'nothing'}{at}")
    return f"ranks diverge at step {found.step}, on Neuron they would hang: {'; '.join(parts)}"


def _figures(summary: Summary) -> str:
    totals = summary.totals
    graphs = ", ".join(f"{num} {kind}" for kind, num in totals.aot_graphs.items() if num)
    neffs = f", {totals.neffs} to compile" if totals.neffs != sum(totals.aot_graphs.values()) else ""
    parts = [f"regions {totals.regions}" + (f" ({graphs}{neffs})" if graphs else "")]
    parts.append(f"eager signatures {totals.eager}")
    if totals.collective:
        parts.append(f"collectives {totals.collective}")
    if totals.disk:
        parts.append(f"found on disk {totals.disk}")
    if len(summary.ranks) > 1:
        parts.append(f"each figure of the largest of {len(summary.ranks)} ranks")
    return ", ".join(parts)


def _padding(tokens: tuple[int, int]) -> str:
    real, padded = tokens
    whole = real + padded
    return f"padding: {padded / whole:.0%} of {whole} tokens"


def views(summary: Summary, by: str) -> list[Table]:
    """Give the tables for one way of looking at the run."""
    if by == "graph":
        return _kept(graphs_table(summary.graphs), eager_table(summary))
    if by == "shape":
        return _kept(shapes_table(summary.graphs))
    if by == "rank":
        return _kept(ranks_table(summary))
    if by == "line":
        return _kept(lines_table(summary))
    tables = [causes_table(summary.causes), graphs_table(summary.graphs, most=MOST_ROWS)]
    return _kept(*tables, eager_table(summary, most=6), fallbacks_table(summary))


def _kept(*tables: Table) -> list[Table]:
    return [table for table in tables if table.rows]


def causes_table(causes: Sequence[Cause]) -> Table:
    """Give what changed, how often, where, and what to do."""
    rows = tuple(_cause(cause) for cause in causes)
    columns = ("regions", "eager", "line", "what changed", "what to do")
    return Table(title="Causes", columns=columns, rows=rows, right=frozenset({0, 1}))


def _cause(cause: Cause) -> tuple[str, ...]:
    regions = str(cause.count) if cause.count else ""
    eager = str(cause.eager) if cause.eager else ""
    codes = f" [{', '.join(cause.rules)}]" if cause.rules else ""
    return regions, eager, str(cause.site or ""), what(cause), cause.advice + codes


def what(cause: Cause) -> str:
    """Give a cause in words: `input_ids dim 1 = 9, 13: 2 lengths`."""
    if cause.kind == "limit":
        limit = cause.values[0] if cause.values else ""
        return f"{cause.pattern} ({limit} graphs for {cause.input})" if cause.input else cause.pattern
    if cause.kind == "guard":
        return f"{cause.pattern}: {cause.guard}"
    ops = f" of {', '.join(op for op, _ in cause.ops[:2])}" if not cause.count and cause.ops else ""
    more = f" and {len(cause.ops) - 2} more" if ops and len(cause.ops) > 2 else ""
    if cause.kind == "mode":
        return cause.pattern
    dim = f" dim {cause.dim}" if cause.dim is not None else ""
    kind = f" {cause.kind}" if cause.kind in ("dtype", "layout", "device") else ""
    values = short(cause.values)
    pattern = "" if cause.pattern == values.replace(", ", ", then ") else f": {cause.pattern}"
    return f"{cause.input}{dim}{kind} = {values}{pattern}{ops}{more}"


def graphs_table(graphs: Sequence[Graph], *, most: int | None = None) -> Table:
    """Give one row a graph."""
    shown = graphs if most is None or len(graphs) <= most + 2 else graphs[:most]
    rows = tuple(
        (graph.kind, graph.name, _inputs(graph), str(graph.count), str(graph.first_step), str(graph.site or ""))
        for graph in shown
    )
    columns = ("kind", "graph", "inputs, or what changed", "asked", "first step", "line")
    note = f"{len(graphs) - len(shown)} more: shapeguard report RUN --by graph" if len(shown) < len(graphs) else ""
    return Table(title="Graphs", columns=columns, rows=rows, right=frozenset({3, 4}), note=note)


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
        (op, str(row.calls), _size(row.num_bytes), str(row.site or ""))
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


def _problem(trouble: Trouble) -> Problem:
    times = f" ({trouble.times} times)" if trouble.times > 1 else ""
    path, line = (trouble.site.file, trouble.site.line) if trouble.site else ("", 0)
    return Problem(path=path, message=trouble.message + times, line=line)
