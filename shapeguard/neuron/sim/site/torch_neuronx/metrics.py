"""Counters and samples of the simulated compilation cache, under the names of `torch_neuronx.metrics` (facts, 3.3)."""

from __future__ import annotations

from typing import Any

from torch_neuronx._device import claim

_counters = claim().device.counter.counters


def is_enabled() -> bool:
    """Tell whether counters move."""
    return bool(_counters.is_enabled)


def set_enabled(enabled: bool) -> None:
    """Let counters move from here on, or not."""
    _counters.set_enabled(enabled)


def get_counter_names() -> list[str]:
    """Name the counters that moved."""
    return list(_counters.names())


def get_counter_value(name: str) -> int:
    """Give a counter; 0 for one that has not moved."""
    return int(_counters.value(name))


def get_metric_names() -> list[str]:
    """Name the metrics with samples."""
    return list(_counters.metric_names())


def get_metric_data(name: str) -> dict[str, Any] | None:
    """Give a metric's samples and their sum."""
    found: dict[str, Any] | None = _counters.metric(name)
    return found


def report() -> str:
    """Give everything as text."""
    return str(_counters.report())


def report_filtered(prefixes: list[str]) -> str:
    """Give what begins so as text."""
    return str(_counters.report(tuple(prefixes)))


def clear_counters() -> None:
    """Set every counter to 0."""
    _counters.clear_counters()


def clear_metrics() -> None:
    """Forget every sample."""
    _counters.clear_metrics()


def clear_all() -> None:
    """Do both."""
    clear_counters()
    clear_metrics()


def get_compilation_metrics() -> dict[str, int]:
    """Give the counters of the compilation cache."""
    return {name: get_counter_value(name) for name in get_counter_names()}
