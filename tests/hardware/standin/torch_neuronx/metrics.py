"""Counters of the compilation cache."""

from __future__ import annotations

from torch_neuronx._device import counter


def get_counter_value(name: str) -> int:
    """Give a counter; 0 for one that has not moved."""
    return int(counter.counters.value(name))
