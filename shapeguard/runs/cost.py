"""What the graphs of a run cost to compile: measured, recorded before, estimated from one's own records, or unknown.

Nothing is guessed: without a measurement or enough records of the same chip the cost is unknown, and said to be.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapeguard.core.graphs import GraphRecord
from shapeguard.runs.graphs import Graph

ENOUGH = 8
"""Records of measured compiles that an estimate needs."""

MEASURED, RECORDED, ESTIMATED, UNKNOWN = "measured", "recorded", "estimated", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds from, seconds to, and how that is known."""

    low_s: float
    high_s: float
    source: str

    def __str__(self) -> str:
        return f"{_range(self.low_s, self.high_s)} ({self.source})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The cost of every graph of a run that has a known one, by the graph's key."""

    known: Mapping[str, Cost] = field(default_factory=dict)
    num_graphs: int = 0

    def text(self, key: str) -> str:
        """Give one graph's cost for reading."""
        return str(self.known[key]) if key in self.known else UNKNOWN

    def plain(self) -> dict[str, object]:
        """Give it as JSON; the seconds are null where nothing is known."""
        has = bool(self.known)
        return {
            "low_s": round(sum(cost.low_s for cost in self.known.values()), 3) if has else None,
            "high_s": round(sum(cost.high_s for cost in self.known.values()), 3) if has else None,
            "num_known": len(self.known),
            "num_unknown": self.num_graphs - len(self.known),
            "sources": sorted({cost.source for cost in self.known.values()}),
        }

    def __str__(self) -> str:
        """Say what the graphs of regions cost together; eager operators stand apart and are not in it."""
        if not self.known:
            return "compile time of the graphs: unknown (none was measured, and the graph cache holds too few records)"
        low, high = (sum(getattr(cost, name) for cost in self.known.values()) for name in ("low_s", "high_s"))
        sources = ", ".join(sorted({cost.source for cost in self.known.values()}))
        left = self.num_graphs - len(self.known)
        rest = f"; unknown for {left} of {self.num_graphs} graphs" if left else ""
        return f"compile time of the graphs: {_range(low, high)} ({sources}){rest}"


def estimate(graphs: Sequence[Graph], records: Iterable[GraphRecord]) -> Costs:
    """Give what is known: the run's own measurement first, then a record of the graph, then a fit over all records."""
    measured = [record for record in records if record.compile_s is not None]
    by_key: dict[str, list[float]] = {}
    for record in measured:
        by_key.setdefault(record.key.graph, []).append(float(record.compile_s or 0.0))
    fit = _fit([record for record in measured if record.nodes])
    known: dict[str, Cost] = {}
    for graph in graphs:
        if (cost := _cost(graph, by_key.get(graph.key, ()), fit)) is not None:
            known.setdefault(graph.key, cost)
    return Costs(known=known, num_graphs=len({graph.key for graph in graphs}))


Fit = tuple[float, float]


def _cost(graph: Graph, recorded: Sequence[float], fit: Fit | None) -> Cost | None:
    if graph.seconds is not None:
        return Cost(low_s=graph.seconds, high_s=graph.seconds, source=MEASURED)
    if recorded:
        return Cost(low_s=min(recorded), high_s=max(recorded), source=RECORDED)
    if fit and graph.nodes:
        return Cost(low_s=fit[0] * graph.nodes, high_s=fit[1] * graph.nodes, source=ESTIMATED)
    return None


def _fit(records: Sequence[GraphRecord]) -> Fit | None:
    """Give seconds a node, from and to: the middle of the user's own records, never a figure of someone else's."""
    if len(records) < ENOUGH:
        return None
    rates = [float(record.compile_s or 0.0) / record.nodes for record in records]
    cuts = statistics.quantiles(rates, n=10, method="inclusive")
    return cuts[0], cuts[-1]


def _range(low: float, high: float) -> str:
    first, last = _duration(low), _duration(high)
    return first if first == last else f"{first} to {last}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
