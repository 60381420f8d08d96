"""What torch's C++ side asks of a device and Python cannot register: set here, in Python, once, at claim time."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim import storage_class
from shapeguard.neuron.sim.module import NeuronModule

_PATCHED_ACCELERATOR = {
    "set_device_index": "set_device",
    "set_device_idx": "set_device",
    "current_device_index": "current_device",
    "current_device_idx": "current_device",
    "synchronize": "synchronize",
    "current_stream": "current_stream",
    "set_stream": "set_stream",
    "empty_cache": "empty_cache",
    "memory_stats": "memory_stats",
    "memory_allocated": "memory_allocated",
    "max_memory_allocated": "max_memory_allocated",
    "memory_reserved": "memory_reserved",
    "max_memory_reserved": "max_memory_reserved",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
    "reset_accumulated_memory_stats": "reset_accumulated_memory_stats",
    "get_memory_info": "mem_get_info",
    "get_device_capability": "get_device_capability",
    "device_count": "device_count",
}


def apply(module: NeuronModule, inner: torch.device) -> None:
    """Patch the storage class, `torch.accelerator` and `torch.Generator`."""
    for name, ours in _PATCHED_ACCELERATOR.items():
        for where in (torch.accelerator, getattr(torch.accelerator, "memory", None)):
            if where is not None and hasattr(where, name):
                setattr(where, name, getattr(module, ours))
    storage_class.apply(inner)
    _patch_generator()


def _patch_generator() -> None:
    """Make `torch.Generator(device="neuron")` a generator of the host: random numbers are drawn there (facts 1.3)."""
    plain: Any = torch.Generator

    class Meta(type(plain)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, plain)

    class Generator(plain, metaclass=Meta):  # type: ignore[misc]
        """A generator; one for the neuron device is the host's kind."""

        def __new__(cls, device: Any = None) -> Any:
            if device is not None and torch.device(device).type == "neuron":
                device = "cpu"
            return plain(device=device) if device is not None else plain()

    Generator.__module__ = "torch"
    setattr(torch, "Generator", Generator)  # noqa: B010
