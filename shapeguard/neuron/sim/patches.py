"""What torch's C++ side asks of a device and Python cannot register: set here, in Python, once, at claim time."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.module import NeuronModule
from shapeguard.neuron.sim.storage import new_outer

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
    _patch_storage(inner)
    _patch_generator()


def _patch_storage(inner: torch.device) -> None:
    cls: Any = torch.UntypedStorage
    plain = {name: getattr(cls, name) for name in _STORAGE}

    def flat(storage: Any) -> torch.Tensor:
        """Give the bytes of the inner side."""
        base = storage.held.base.untyped_storage()
        return torch.empty(0, dtype=torch.uint8, device=inner).set_(base)

    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "neuron":
            return plain["__new__"](kind, *args, **kwargs)
        size = args[0] if args else 0
        if not isinstance(size, int):
            raise TypeError("a storage on neuron is made from a number of bytes")
        return new_outer(torch.empty(size, dtype=torch.uint8, device=inner)).untyped_storage()

    def copy_(self: Any, source: Any, non_blocking: bool | None = None) -> Any:
        if not _is_ours(self) and not _is_ours(source):
            return plain["copy_"](self, source, non_blocking)
        to = flat(self) if _is_ours(self) else torch.empty(0, dtype=torch.uint8).set_(self)
        data = flat(source) if _is_ours(source) else torch.empty(0, dtype=torch.uint8).set_(source)
        if data.is_meta and not to.is_meta:
            to.zero_()
        else:
            to.copy_(data)
        return self

    def clone(self: Any) -> Any:
        return new(type(self), self.nbytes(), device="neuron").copy_(self) if _is_ours(self) else plain["clone"](self)

    def resize_(self: Any, size: int) -> Any:
        if not _is_ours(self):
            return plain["resize_"](self, size)
        # Fully sharded training frees a parameter by resizing its storage to 0 and back: the inner side follows,
        # the outer one keeps its size, which torch's bounds checks look at.
        box = self.held
        box.base.untyped_storage().resize_(size)
        box.resize(size)
        return self

    def nbytes(self: Any) -> int:
        return int(self.held.base.untyped_storage().nbytes()) if _is_ours(self) else plain["nbytes"](self)

    def cpu(self: Any) -> Any:
        return torch.UntypedStorage(self.nbytes()).copy_(self) if _is_ours(self) else plain["cpu"](self)

    def getitem(self: Any, index: Any) -> Any:
        return cpu(self)[index] if _is_ours(self) else plain["__getitem__"](self, index)

    def share_memory_(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_ours(self):
            raise RuntimeError("share_memory_: storage is on neuron; move it to the CPU first")
        return plain["share_memory_"](self, *args, **kwargs)

    def tolist(self: Any) -> list[int]:
        return list(cpu(self)) if _is_ours(self) else plain["tolist"](self)

    def representation(self: Any) -> str:
        return f"[simulated neuron storage of {self.nbytes()} bytes]" if _is_ours(self) else plain["__repr__"](self)

    cls.__new__ = staticmethod(new)
    cls.copy_, cls.clone, cls.resize_, cls.cpu, cls.share_memory_ = copy_, clone, resize_, cpu, share_memory_
    cls.nbytes = cls.size = cls.__len__ = nbytes
    cls.__getitem__, cls.tolist, cls.__repr__, cls.__str__ = getitem, tolist, representation, representation


_STORAGE = ("__new__", "copy_", "clone", "resize_", "nbytes", "cpu", "__getitem__", "share_memory_", "tolist", "__repr__")


def _is_ours(storage: Any) -> bool:
    # Not by device: the storage of a fake tensor says "neuron" too.
    return "held" in storage.__dict__


def _patch_generator() -> None:
    """Make `torch.Generator(device="neuron")` a generator of the host: random numbers are drawn there (facts 1.3)."""

    class Meta(type(torch.Generator)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, plain)

    plain = torch.Generator

    class Generator(plain, metaclass=Meta):
        """A generator; one for the neuron device is the host's kind."""

        def __new__(cls, device: Any = None) -> Any:
            if device is not None and torch.device(device).type == "neuron":
                device = "cpu"
            return plain.__new__(plain, device=device) if device is not None else plain.__new__(plain)

    Generator.__module__ = "torch"
    torch.Generator = Generator  # type: ignore[misc]
