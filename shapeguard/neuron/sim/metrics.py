"""What TorchNeuron counts of its own compiling (facts, 3.1 to 3.4): records of graphs, counters of its cache."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

PREFIX = "CompilationCache."
TABLES = ("graph_stats",)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphMetrics:
    """One compiled graph, with TorchNeuron's names; the simulation takes no time to lower or compile it."""

    graph_id: str
    """The whole key."""
    graph_name: str
    model_name: str
    has_collectives: bool
    graph_node_count: int
    timestamp: float
    """Seconds since the epoch."""
    torch_neuronx_fx_passes_us: int = 0
    torch_neuronx_lower_us: int = 0
    torch_neuronx_compile_us: int = 0
    """0 where the NEFF came from disk or was known, as there; 1 where it would have been compiled."""


class Counters:
    """Named counters and samples, which move only while they are enabled."""

    def __init__(self, *, is_enabled: bool) -> None:
        self.is_enabled = is_enabled
        self.settle: Callable[[], None] = lambda: None
        """Called before anything is read or switched: what was counted elsewhere comes in."""
        self._values: dict[str, int] = {}
        self._samples: dict[str, list[tuple[int, float]]] = {}

    def add(self, name: str, times: int = 1) -> None:
        """Count."""
        if self.is_enabled and times:
            self._values[PREFIX + name] = self._values.get(PREFIX + name, 0) + times

    def sample(self, name: str, value: float) -> None:
        """Take a sample of a metric."""
        if self.is_enabled:
            self._samples.setdefault(PREFIX + name, []).append((int(time.time() * 1000), value))

    def set_enabled(self, is_enabled: bool) -> None:
        """Turn counting on or off from here on."""
        self.settle()
        self.is_enabled = bool(is_enabled)

    def value(self, name: str) -> int:
        """Give a counter by its whole name; 0 for one that has not moved."""
        self.settle()
        return self._values.get(name, 0)

    def names(self) -> list[str]:
        """Name the counters that moved."""
        self.settle()
        return sorted(self._values)

    def metric_names(self) -> list[str]:
        """Name the metrics that have samples."""
        return sorted(self._samples)

    def metric(self, name: str) -> dict[str, Any] | None:
        """Give a metric's samples and their sum; None for one without."""
        found = self._samples.get(name)
        if found is None:
            return None
        whole = sum(value for _, value in found)
        return {
            "accumulator": whole,
            "total_samples": len(found),
            "repr": f"{whole:g}",
            "samples": [{"timestamp_ns": at * 1_000_000, "value": value} for at, value in found],
        }

    def clear_counters(self) -> None:
        """Set every counter to 0."""
        self.settle()
        self._values.clear()

    def clear_metrics(self) -> None:
        """Forget every sample."""
        self._samples.clear()

    def report(self, prefixes: tuple[str, ...] = ("",)) -> str:
        """Give counters and metrics as text, those whose name begins so."""
        rows = [f"Counter: {name}\n  Value: {self._values[name]}" for name in self.names() if name.startswith(prefixes)]
        for name in self.metric_names():
            if name.startswith(prefixes):
                values = [value for _, value in self._samples[name]]
                rows.append(f"Metric: {name}\n  TotalSamples: {len(values)}\n  Accumulator: {sum(values):g}")
        return "\n".join(rows)


def metric_tables(environ: Mapping[str, str], records: list[GraphMetrics]) -> Callable[[], None] | None:
    """Give what writes the asked-for tables at the end of the process; None where none is asked for."""
    asked = [name.strip() for name in environ.get("TORCH_NEURONX_ENABLED_METRIC_TABLES", "").split(",") if name.strip()]
    for name in asked:
        if name not in TABLES:
            hint = f"TORCH_NEURONX_ENABLED_METRIC_TABLES takes {', '.join(TABLES)}"
            raise ValueError(f"unknown metric table {name!r}: {hint}")
    if not asked:
        return None
    folder = Path(environ.get("TORCH_NEURONX_METRICS_DIR") or "/tmp")
    path = folder / f"metric_table_graph_stats_rank{environ.get('RANK') or 0}.csv"
    return lambda: _write(path, records)


def _write(path: Path, records: list[GraphMetrics]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, [field.name for field in fields(GraphMetrics)])
        rows.writeheader()
        rows.writerows(asdict(record) for record in records)
