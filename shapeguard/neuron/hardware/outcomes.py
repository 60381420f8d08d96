"""How compiles ended: known only once TorchNeuron's compile thread is through, so written down as a later line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shapeguard.core.events import Outcome, Sink
from shapeguard.neuron.hardware import names
from shapeguard.neuron.hardware.names import Neuron

_PREFIX = "CompilationCache."


@dataclass(slots=True, kw_only=True)
class Pending:
    """A compile that was asked for, of which it is not known yet how it ended."""

    n: int
    """Its number among the compile lines of this process."""
    key: str
    """TorchNeuron's key, or the part of it that was handed over."""
    is_graph: bool
    ended: dict[str, Any] = field(default_factory=dict)


class Outcomes:
    """Waits for outcomes, seconds, names and files of what was compiled."""

    def __init__(self, sink: Sink, neuron: Neuron) -> None:
        self._sink = sink
        self._neuron = neuron
        self._pending: list[Pending] = []
        self._taken: set[str] = set()
        self._num_records = 0
        self._records: list[Any] = []
        self.num_unsettled = 0

    def expect(self, n: int, key: str, *, is_graph: bool) -> Pending:
        """Note a compile line whose end is to be found out."""
        pending = Pending(n=n, key=key, is_graph=is_graph)
        self._pending.append(pending)
        return pending

    def settle(self, *, is_end: bool = False) -> None:
        """Write down what has become of the compiles so far; waits for those under way."""
        if not self._pending:
            return
        self._neuron.settle()
        entries = self._entries()
        self._read_records()
        left: list[Pending] = []
        for pending in self._pending:
            if self._find(pending, entries):
                self._sink.emit({"type": "outcome", "n": pending.n, **pending.ended})
            else:
                left.append(pending)
        if is_end:
            left = self._by_counters(left)
            self.num_unsettled = len(left)
        self._pending = left

    def _entries(self) -> Mapping[str, Mapping[str, Any]]:
        rows = self._neuron.call(names.ENTRIES)
        return {str(row["cache_key"]): row for row in rows or () if isinstance(row, Mapping) and "cache_key" in row}

    def _read_records(self) -> None:
        rows = self._neuron.call(names.METRICS)
        if isinstance(rows, list):
            # The program may have cleared them in between.
            start = self._num_records if len(rows) >= self._num_records else 0
            self._records += rows[start:]
            self._num_records = len(rows)

    def _find(self, pending: Pending, entries: Mapping[str, Mapping[str, Any]]) -> bool:
        found = self._entry(pending, entries)
        if pending.is_graph:
            self._from_record(pending, found)
        if found:
            self._taken.add(found)
            ms = float(entries[found].get("compilation_time_ms") or 0)
            pending.ended["neuron"] = found
            if not pending.ended.get("outcome"):
                self._judge(pending, ms / 1000)
            info = self._neuron.call(names.NEFF, found)
            if isinstance(info, tuple) and info and isinstance(info[0], str):
                pending.ended["neff"] = info[0]
        return "outcome" in pending.ended

    def _entry(self, pending: Pending, entries: Mapping[str, Mapping[str, Any]]) -> str:
        if not pending.key:
            return ""
        if pending.key in entries:
            return pending.key
        holding = [key for key in entries if pending.key in key and key not in self._taken]
        return min(holding, key=len, default="")

    def _from_record(self, pending: Pending, found: str) -> None:
        """Take name and seconds of a graph from the record of its lowering; records come in the order of graphs."""
        wanted = found or pending.key
        for place, record in enumerate(self._records):
            identity = str(getattr(record, "graph_id", ""))
            if not wanted or wanted in identity or identity in wanted:
                del self._records[place]
                pending.ended["name"] = str(getattr(record, "graph_name", ""))
                pending.ended["neuron"] = identity
                if "outcome" not in pending.ended:
                    self._judge(pending, float(getattr(record, "torch_neuronx_compile_us", 0) or 0) / 1e6)
                return

    def _judge(self, pending: Pending, seconds: float) -> None:
        # No time was spent compiling: the file came from disk (or compiled in less than a millisecond).
        pending.ended["outcome"] = Outcome.COMPILED if seconds > 0 else Outcome.DISK
        if seconds > 0:
            pending.ended["seconds"] = round(seconds, 3)

    def _by_counters(self, left: list[Pending]) -> list[Pending]:
        """Judge what is left by the totals: where nothing came from disk, everything was compiled."""
        hits = self._counter("PersistentHits", "persistent_hits")
        misses = self._counter("InMemoryMisses", "in_memory_misses")
        if not misses or (hits and hits < misses):
            return left
        outcome = Outcome.DISK if hits else Outcome.COMPILED
        for pending in left:
            self._sink.emit({"type": "outcome", "n": pending.n, "outcome": outcome})
        return []

    def _counter(self, name: str, field_name: str) -> int:
        value = self._neuron.call(names.COUNTER, _PREFIX + name)
        if not isinstance(value, int):
            stats = self._neuron.call(names.STATS)
            value = stats.get(field_name) if isinstance(stats, Mapping) else None
        return int(value or 0)

    def __iter__(self) -> Iterator[Pending]:
        return iter(self._pending)
