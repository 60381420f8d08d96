"""The in-memory cache of NEFFs in front of the persistent one: which request compiles (facts, sections 0 and 3.2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shapeguard.core.events import Outcome
from shapeguard.core.forbid import GATE, RAISE
from shapeguard.core.neffs import SIMULATED
from shapeguard.neuron.sim.metrics import PREFIX, Counters
from shapeguard.neuron.sim.persistent import Store, artifact, persistent_key

# Nothing is compiled, so nothing takes time; it must only differ from 0, by which readers know a find on disk.
_COMPILED_MS = 1


@dataclass(slots=True, kw_only=True)
class Entry:
    """One NEFF in memory."""

    key: str
    persistent_key: str
    data: bytes
    compile_ms: int
    num_hits: int = 0
    """Requests after the one that brought it here."""


@dataclass(slots=True)
class Tally:
    """Calls that ask for the same entries, counted where it is cheap; `settle` brings them in."""

    entries: Sequence[Entry]
    times: int = 0
    num_settled: int = 0


class Forbidden(Exception):  # noqa: N818 - who asked for the NEFF turns it into an error
    """Nothing has the NEFF, and nothing may compile."""


class NeffCache:
    """One string, one NEFF; a string that is not here is looked for on disk, then compiled."""

    def __init__(
        self,
        store: Store | None,
        counters: Counters,
        *,
        max_entries: int = 0,
        digits: int = 32,
        compiler: str = "",
        speed: float = 0.0,
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.counters = counters
        self._store = store
        self._max_entries = max_entries
        self._digits = digits
        self._compiler = compiler
        self._speed = speed
        self._lock = threading.RLock()

    def request(self, key: str, program: str, compile_s: float = 0.0) -> tuple[Entry, Outcome | None]:
        """Give the entry of a key, and how it came to be here; None for one that was here already.

        `compile_s`: what the compiler is guessed to take. Raises `Forbidden` where it would run and must not.
        """
        with self._lock:
            entry = self.entries.get(key)
            if entry is not None:
                self.hit(entry)
                return entry, None
            self.counters.add("InMemoryMisses")
            entry, outcome = self._bring(key, program, compile_s)
            self._keep(entry)
            return entry, outcome

    def hit(self, entry: Entry, times: int = 1) -> None:
        """Count a use of an entry."""
        entry.num_hits += times
        self.counters.add("InMemoryHits", times)
        if self._max_entries and entry.key in self.entries:
            # The order of the dictionary is that of last uses.
            self.entries[entry.key] = self.entries.pop(entry.key)

    def settle(self, tallies: Sequence[Tally]) -> None:
        """Bring in what was counted elsewhere."""
        for tally in tallies:
            times = tally.times - tally.num_settled
            if times:
                tally.num_settled = tally.times
                for entry in tally.entries:
                    self.hit(entry, times)

    def _bring(self, key: str, program: str, compile_s: float) -> tuple[Entry, Outcome]:
        name = persistent_key(key, program, self._digits, self._compiler)
        if self._store is None:
            return self._compile(key, name, compile_s), Outcome.COMPILED
        data = self._find(name)
        if data is None:
            self.counters.add("PersistentMisses")
            with self._store.locked(name) as is_first:
                # Another process may have compiled it while this one waited for the lock.
                data = None if is_first else self._find(name)
                if data is None:
                    entry = self._compile(key, name, compile_s)
                    self._store.put(name, entry.data)
                    return entry, Outcome.COMPILED
        return Entry(key=key, persistent_key=name, data=data, compile_ms=0), Outcome.DISK

    def _find(self, name: str) -> bytes | None:
        data = self._store.get(name) if self._store is not None else None
        if data is not None:
            self.counters.add("PersistentHits")
        return data

    def _compile(self, key: str, name: str, compile_s: float) -> Entry:
        if GATE.mode == RAISE:
            raise Forbidden
        if self._speed:
            time.sleep(compile_s / self._speed)
        entry = Entry(key=key, persistent_key=name, data=artifact(name), compile_ms=_COMPILED_MS)
        self.counters.add("TotalCompilations")
        self.counters.sample("NeffSize", len(entry.data))
        self.counters.sample("CompilationTime", entry.compile_ms)
        return entry

    def _keep(self, entry: Entry) -> None:
        while self._max_entries and len(self.entries) >= self._max_entries:
            del self.entries[next(iter(self.entries))]
            self.counters.add("Evictions")
        self.entries[entry.key] = entry

    def clear(self, *, disk: bool) -> None:
        """Forget what is in memory, and on disk with all counters where that is asked for."""
        self.entries.clear()
        if disk:
            if self._store is not None:
                self._store.clear()
            self.counters.clear_counters()
            self.counters.clear_metrics()

    def stored(self, name: str) -> bytes | None:
        """Give what lies under a persistent key."""
        return self._store.get(name) if self._store is not None else None

    def store(self, name: str, data: bytes) -> None:
        """Put something under a persistent key."""
        if not data.startswith(SIMULATED):
            raise RuntimeError("the simulated cache takes no real NEFF: it could not run one")
        if self._store is not None:
            self._store.put(name, data)

    def stats(self) -> dict[str, Any]:
        """Give TorchNeuron's statistics under its names; counts are 0 unless metrics are enabled."""
        count = {name: self.counters.value(PREFIX + name) for name in _COUNTERS}
        size = sum(len(entry.data) for entry in self.entries.values())
        hits = count["InMemoryHits"] + count["PersistentHits"]
        asked = count["InMemoryHits"] + count["InMemoryMisses"]
        return {
            "total_entries": len(self.entries),
            "in_memory_hits": count["InMemoryHits"],
            "in_memory_misses": count["InMemoryMisses"],
            "persistent_hits": count["PersistentHits"],
            "persistent_misses": count["PersistentMisses"],
            "cache_hits": hits,
            "cache_misses": count["TotalCompilations"],
            "hit_rate": hits / asked if asked else 0.0,
            "memory_usage_bytes": size,
            "total_compilation_time_ms": count["TotalCompilations"] * _COMPILED_MS,
            "evictions_performed": count["Evictions"],
            "total_compilations": count["TotalCompilations"],
            "max_cache_size_bytes": 0,
            "max_cache_entries": self._max_entries,
            "memory_utilization_ratio": 0.0,
        }


_COUNTERS = ("InMemoryHits", "InMemoryMisses", "PersistentHits", "PersistentMisses", "TotalCompilations", "Evictions")
