"""What `torch.UntypedStorage` does for storages of the device: C++ has no hook for it that Python could register."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.meta import keeps_values
from shapeguard.neuron.sim.storage import new_outer

_CLASS: Any = torch.UntypedStorage
_PLAIN: dict[str, Any] = {}
_CHANGED = "copy_ clone resize_ nbytes cpu __getitem__ share_memory_ tolist __repr__ _write_file _set_from_file".split()


def apply(inner: torch.device) -> None:
    """Change the class, once; storages that are not ours behave as before."""
    # Of an inner storage: a weak reference to its outer one. Read at every call, so that most find this default.
    _CLASS.outer = None
    _PLAIN.update({name: getattr(_CLASS, name) for name in [*_CHANGED, "__new__"]})
    for name, ours in _METHODS.items():
        setattr(_CLASS, name, _only_ours(name, ours))
    _CLASS.copy_ = _copy_
    _CLASS.size = _CLASS.__len__ = _CLASS.nbytes
    _CLASS.__str__ = _CLASS.__repr__
    _CLASS.__new__ = staticmethod(_maker(inner))


def _is_ours(storage: Any) -> bool:
    # Not by device: the storage of a fake tensor says "neuron" too.
    return "held" in storage.__dict__


def _only_ours(name: str, ours: Any) -> Any:
    plain = _PLAIN[name]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(self, *args, **kwargs) if "held" in self.__dict__ else plain(self, *args, **kwargs)

    return method


def _maker(inner: torch.device) -> Any:
    plain = _PLAIN["__new__"]

    def new(kind: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "neuron":
            return plain(kind, *args, **kwargs)
        size = args[0] if args else 0
        if not isinstance(size, int):
            raise TypeError("a storage on neuron is made from a number of bytes")
        # Bytes whose type is not known yet: they keep their values until a tensor says what they are.
        keeps = inner.type == "meta" and keeps_values(torch.uint8, size)
        return new_outer(torch.empty(size, dtype=torch.uint8, device="cpu" if keeps else inner)).untyped_storage()

    return new


def _bytes_of(storage: Any) -> torch.Tensor:
    """Give the bytes of a storage, of the inner side where it is ours."""
    if not _is_ours(storage):
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    base = storage.held.base
    return torch.empty(0, dtype=torch.uint8, device=base.device).set_(base.untyped_storage())


def _copy_(self: Any, source: Any, non_blocking: bool | None = None) -> Any:
    if not _is_ours(self) and not _is_ours(source):
        return _PLAIN["copy_"](self, source, non_blocking)
    to, data = _bytes_of(self), _bytes_of(source)
    if data.is_meta and not to.is_meta:
        to.zero_()
    else:
        to.copy_(data.to(to.device))
    return self


def _nbytes(self: Any) -> int:
    return int(self.held.base.untyped_storage().nbytes())


def _resize_(self: Any, size: int) -> Any:
    # Fully sharded training frees a parameter by resizing its storage to 0 and back: the inner side follows, the outer
    # one keeps its size, which torch's bounds checks look at.
    self.held.base.untyped_storage().resize_(size)
    self.held.resize(size)
    return self


def _cpu(self: Any) -> Any:
    return torch.UntypedStorage(_nbytes(self)).copy_(self)


def _set_from_file(self: Any, *args: Any) -> Any:
    there = torch.UntypedStorage(_nbytes(self))
    there._set_from_file(*args)
    return _copy_(self, there)


def _share_memory_(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("share_memory_: the storage is on neuron; move the tensor to the CPU first")


_METHODS = {
    "clone": lambda self: type(self)(_nbytes(self), device="neuron").copy_(self),
    "resize_": _resize_,
    "nbytes": _nbytes,
    "cpu": _cpu,
    "__getitem__": lambda self, index: _cpu(self)[index],
    "share_memory_": _share_memory_,
    "tolist": lambda self: list(_cpu(self)),
    "_set_from_file": _set_from_file,
    "_write_file": lambda self, *args: _cpu(self)._write_file(*args),
    "__repr__": lambda self: f"[simulated neuron storage of {_nbytes(self)} bytes]",
}
