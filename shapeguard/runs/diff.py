"""What changed between two runs: graphs gone, added, and changed, and by which input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from shapeguard.core.errors import Exit
from shapeguard.core.events import SCHEMA
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.runs.graphs import Graph
from shapeguard.runs.ranks import shape_text
from shapeguard.runs.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A graph that took another's place."""

    old: Graph
    new: Graph
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The graphs that two runs do not share."""

    gone: tuple[Graph, ...]
    added: tuple[Graph, ...]
    changed: tuple[Changed, ...]


def difference(old: Summary, new: Summary) -> Difference:
    """Pair every graph that is new with the most similar one that is gone from the same code."""
    before = {(graph.kind, graph.key): graph for graph in old.graphs}
    after = {(graph.kind, graph.key): graph for graph in new.graphs}
    gone = [graph for key, graph in before.items() if key not in after]
    added: list[Graph] = []
    changed: list[Changed] = []
    for graph in (graph for key, graph in after.items() if key not in before):
        twin = _twin(graph, gone)
        if twin is None:
            added.append(graph)
        else:
            gone.remove(twin)
            changed.append(Changed(old=twin, new=graph, change=_change(twin, graph)))
    return Difference(gone=tuple(gone), added=tuple(added), changed=tuple(changed))


def compare(old: Summary, new: Summary) -> Report:
    """Give the difference as a report; exit 1 where more regions compile than before."""
    found = difference(old, new)
    before, after = old.totals, new.totals
    worse = after.regions > before.regions
    word = (
        "more regions compile"
        if worse
        else "fewer regions compile"
        if after.regions < before.regions
        else "as many regions"
    )
    sections: list[Text | Table] = [Text(text=f"{word}: {before.regions} → {after.regions}", strong=True)]
    if before.eager != after.eager:
        sections.append(Text(text=f"eager signatures: {before.eager} → {after.eager}"))
    if rows := tuple(_rows(found)):
        sections.append(
            Table(title="Graphs", columns=("", "kind", "graph", "inputs, or what changed", "line"), rows=rows)
        )
    else:
        sections.append(Text(text="the graphs are the same"))
    return Report(
        tool="report",
        sections=tuple(sections),
        document=cast("dict[str, JSON]", _document(found, old, new)),
        exit_code=Exit.FINDINGS if worse else Exit.CLEAN,
    )


def _twin(graph: Graph, gone: Sequence[Graph]) -> Graph | None:
    places = [other for other in gone if other.kind == graph.kind and _place(other) == _place(graph)]
    return min(places, key=lambda other: _distance(other, graph), default=None)


def _place(graph: Graph) -> tuple[str, str]:
    return graph.model, graph.code or (graph.site.file if graph.site else "")


def _distance(old: Graph, new: Graph) -> int:
    known = {row.path: row for row in old.shown}
    return sum(known.get(row.path) != row for row in new.shown) + abs(len(old.shown) - len(new.shown))


def _change(old: Graph, new: Graph) -> str:
    known = {row.path: row for row in old.shown}
    parts = []
    for row in new.shown:
        was = known.get(row.path)
        if was is None:
            parts.append(f"{row.path} is new: {shape_text(row.shape)} {row.dtype}")
        elif was.shape != row.shape:
            parts.append(f"{row.path} {shape_text(was.shape)} → {shape_text(row.shape)}")
        elif was != row:
            parts.append(f"{row.path} {was.dtype} → {row.dtype}" if was.dtype != row.dtype else f"{row.path}: layout")
    parts += [f"{path} is gone" for path in sorted(known.keys() - {row.path for row in new.shown})]
    if not parts:
        return f"the same inputs, another program ({old.nodes} → {new.nodes} nodes)"
    return ", ".join(parts[:4]) + (f" and {len(parts) - 4} more" if len(parts) > 4 else "")


def _rows(found: Difference) -> Iterable[tuple[str, ...]]:
    for row in found.changed:
        yield "~", row.new.kind, row.new.name, row.change, str(row.new.site or "")
    for graph in found.added:
        yield "+", graph.kind, graph.name, _inputs(graph), str(graph.site or "")
    for graph in found.gone:
        yield "-", graph.kind, graph.name, _inputs(graph), str(graph.site or "")


def _inputs(graph: Graph) -> str:
    return ", ".join(f"{row.path} {shape_text(row.shape)}" for row in graph.shown[:3])


def _document(found: Difference, old: Summary, new: Summary) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "regions": {"old": old.totals.regions, "new": new.totals.regions},
        "eager": {"old": old.totals.eager, "new": new.totals.eager},
        "changed": [
            {"old": row.old.plain(ranks=False), "new": row.new.plain(ranks=False), "change": row.change}
            for row in found.changed
        ],
        "added": [graph.plain(ranks=False) for graph in found.added],
        "gone": [graph.plain(ranks=False) for graph in found.gone],
    }
