"""The functions of TorchNeuron's native module that a tracer can know of."""

from __future__ import annotations

from typing import Any

from shapeguard.core.cost import EAGER_S
from torch_neuronx import _device


def submit(op_name: str, inputs: Any, outputs: Any, ir: bytes, stream: Any, cache_key: str, *rest: Any) -> None:
    """Take a kernel."""
    text = _device.asked.pop()
    with _device.allowed():
        entry, _ = _device.request_eager(text, text, EAGER_S)
    _device.answered.append(entry)


def graph(base_key: str, program: bytes, has_collectives: bool) -> str:
    """Take a graph; gives its whole key at once."""
    key, text, seconds = _device.asked.pop()
    with _device.allowed():
        answer = _device.request(key, text, seconds)
    _device.answered.append(answer)
    return key


def miss(*args: Any) -> None:
    """Log a miss of the cache of sync mode."""


def _get_compilation_cache_entries() -> list[dict[str, Any]]:
    rows = _device.claimed.readers._get_compilation_cache_entries()
    return [row for row in rows if row["cache_key"] in _device.visible]


_submit_xla_task_to_pipeline = submit
compile_graph = graph
_log_neff_cache_miss = miss
_get_compilation_cache_stats = _device.claimed.readers._get_compilation_cache_stats
_get_all_cache_keys = _device.claimed.readers._get_all_cache_keys
get_neff_info = _device.claimed.readers.get_neff_info
