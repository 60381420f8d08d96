"""Every name of torch_neuronx that the adapter uses: looked for at run time, by `hasattr`, one at a time.

M: read in the public source of April 2026. D: in AWS's documentation of October 2026. Everything below `_C` is M and
private, so any of it may be gone in a release: what is missing is said, and the next source of evidence taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

PACKAGE = "torch_neuronx"
SUBMIT = "_C._submit_xla_task_to_pipeline"
COMPILE = "_C.compile_graph"
ENTRIES = "_C._get_compilation_cache_entries"
STATS = "_C._get_compilation_cache_stats"
KEYS = "_C._get_all_cache_keys"
NEFF = "_C.get_neff_info"
MISS = "_C._log_neff_cache_miss"
METRICS = "get_dynamo_metrics"
FALLBACKS = "get_fallback_ops"
EXECUTED = "get_executed_ops"
COUNTER = "metrics.get_counter_value"
NAMES: Mapping[str, str] = {
    SUBMIT: "each eager kernel with TorchNeuron's own key (async mode)",
    MISS: "each eager key that is new (sync mode)",
    COMPILE: "each graph of torch.compile with TorchNeuron's own key",
    ENTRIES: "what was compiled, for how long, and what came from disk",
    STATS: "totals of the cache",
    KEYS: "the keys in the cache",
    NEFF: "the file of a key",
    METRICS: "names and seconds of graphs",
    FALLBACKS: "operators that ran on the host",
    EXECUTED: "operators that ran on the device",
    COUNTER: "counters of the cache",
}
"""What each name is good for."""


class Neuron:
    """The `torch_neuronx` of this process, whatever of it is there."""

    def __init__(self) -> None:
        self._wrapped: set[str] = set()

    @property
    def module(self) -> Any:
        """The package, or None before it is imported whole."""
        found = sys.modules.get(PACKAGE)
        spec = getattr(found, "__spec__", None)
        return None if found is None or getattr(spec, "_initializing", False) else found

    def find(self, name: str) -> Callable[..., Any] | None:
        """Give a function by its name below the package; None where there is none."""
        owner, last = self._owner(name)
        found = getattr(owner, last, None)
        return found if callable(found) else None

    def _owner(self, name: str) -> tuple[Any, str]:
        owner: Any = self.module
        *path, last = name.split(".")
        for part in path:
            inner = getattr(owner, part, None) if owner is not None else None
            owner = inner if inner is not None else sys.modules.get(f"{PACKAGE}.{part}")
        return owner, last

    def call(self, name: str, *args: Any) -> Any:
        """Call a reader; None where it is missing or fails, for reading never ends the program."""
        found = self.find(name)
        if found is None:
            return None
        with suppress(Exception):
            return found(*args)
        return None

    def wrap(self, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
        """Put a function around one of the package's, where callers look it up: tells whether that was possible."""
        if name in self._wrapped:
            return True
        owner, last = self._owner(name)
        plain = getattr(owner, last, None)
        if not callable(plain):
            return False
        try:
            setattr(owner, last, make(plain))
        except (AttributeError, TypeError):
            return False
        self._wrapped.add(name)
        return True

    def present(self) -> frozenset[str]:
        """Name what is there."""
        return frozenset(name for name in NAMES if self.find(name) is not None)

    def settle(self) -> None:
        """Wait until everything that was submitted is compiled; reading before that sees only a part of it."""
        self.call("synchronize")

    def facts(self) -> dict[str, Any]:
        """Give what the device says of itself; what it doesn't say is left out."""
        found: dict[str, Any] = {}
        properties = self.call("get_device_properties", 0) or self.call("get_device_properties")
        name = str(getattr(properties, "name", "") or "")
        if name.startswith(("trn", "inf")):
            found["target"] = name
        count = self.call("device_count")
        if isinstance(count, int):
            found["num_devices"] = count
        return found
