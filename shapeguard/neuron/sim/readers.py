"""What a tracer reads on hardware, under TorchNeuron's names and in its shapes (facts, section 3.3).

The site's module `torch_neuronx._C` has these functions; the adapter for hardware reads nothing else.
"""

from __future__ import annotations

from typing import Any

from shapeguard.neuron.sim.device import Device


class Readers:
    """The functions of `torch_neuronx._C`, and the names of operators that ran."""

    def __init__(self, device: Device) -> None:
        self._counter = device.counter

    def _get_compilation_cache_stats(self) -> dict[str, Any]:
        self._counter.settle()
        return self._counter.neffs.stats()

    def _get_compilation_cache_entries(self) -> list[dict[str, Any]]:
        self._counter.settle()
        return [
            {
                "cache_key": entry.key,
                "neff_size_bytes": len(entry.data),
                "access_count": entry.num_hits,
                "compilation_time_ms": entry.compile_ms,
            }
            for entry in self._counter.neffs.entries.values()
        ]

    def _get_all_cache_keys(self) -> set[str]:
        return set(self._counter.neffs.entries)

    def get_neff_info(self, key: str) -> tuple[str, bytes] | None:
        """Give the persistent key and the bytes of a key in memory."""
        entry = self._counter.neffs.entries.get(key)
        return (entry.persistent_key, entry.data) if entry is not None else None

    def get_neff_cache(self, persistent_key: str) -> bytes | None:
        """Give what lies on disk under a persistent key."""
        return self._counter.neffs.stored(persistent_key)

    def put_neff_cache(self, persistent_key: str, data: bytes) -> None:
        """Put a simulated artifact on disk; a real NEFF is refused."""
        self._counter.neffs.store(persistent_key, data)

    def _clear_compilation_cache(self) -> None:
        self._clear(disk=True)

    def _clear_compilation_memory_cache(self) -> None:
        self._clear(disk=False)

    def _clear(self, *, disk: bool) -> None:
        self._counter.forget()
        self._counter.neffs.clear(disk=disk)
        self._counter.eager_neffs.clear(disk=disk)

    def get_executed_ops(self) -> list[str]:
        """Name the operators that ran on the device."""
        return sorted(f"aten::{op}" for op in self._counter.executed)

    def get_fallback_ops(self) -> list[str]:
        """Name the operators that ran on the host, for want of a kernel."""
        return sorted(f"aten::{op}" for op in self._counter.fallen_back)

    def clear_op_tracking(self) -> None:
        """Forget both lists; counts of the trace are not touched."""
        self._counter.clear_tracking()
