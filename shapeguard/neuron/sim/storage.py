"""Tensors of the simulated device: where they keep their data, and how to get in and out.

A `neuron` tensor is a plain `torch.Tensor` (the outer one). Its untyped storage, a Python object that lives as long
as torch's own StorageImpl, carries a `Held`: the inner tensor on the CPU or on `meta` with the real data. Views,
`.data =`, `detach`, `Parameter`, `set_` keep working because identity sits in the storage, and torch never looks at the
outer storage's address: it is made up, unique, and not mapped.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from shapeguard.neuron.sim.blank import Geometry, geometry, known_geometry
from shapeguard.neuron.sim.torch_private import cpu_kernel

Tensor = torch.Tensor


class Memory:
    """Live bytes and tensors of the device, as its memory statistics report them."""

    __slots__ = ("live_bytes", "num_allocations", "num_live", "peak_bytes", "total_allocated", "total_freed")

    def __init__(self) -> None:
        self.live_bytes = 0
        self.peak_bytes = 0
        self.total_allocated = 0
        self.total_freed = 0
        self.num_live = 0
        self.num_allocations = 0

    def take(self, size: int) -> None:
        """Count an allocation of `size` bytes."""
        self.live_bytes += size
        self.total_allocated += size
        self.num_live += 1
        self.num_allocations += 1
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes = self.live_bytes

    def give(self, size: int) -> None:
        """Count the end of an allocation."""
        self.live_bytes -= size
        self.total_freed += size
        self.num_live -= 1


memory = Memory()


class Held:
    """The inner side of one storage."""

    __slots__ = ("__weakref__", "base", "dtype", "form", "offset", "origin", "shape", "size", "stride", "tokenized")

    def __init__(self, base: Tensor, size: int, form: Geometry) -> None:
        self.base = base
        self.form = form
        # Of the base, read here once: what goes in is compared with them at every call.
        self.shape = form.shape
        self.stride = form.stride
        self.dtype = form.dtype
        self.offset = 0
        self.size = size
        self.origin: Any = None
        """The site of the copy that brought the data from the host, if one did."""
        self.tokenized: Any = None
        """The site of the tokenizer's call that made the data, and the length it gave."""
        memory.take(size)

    def __del__(self, give: Any = memory.give) -> None:
        # The default keeps the counter reachable while the interpreter shuts down.
        give(self.size)

    def resize(self, size: int) -> None:
        """Follow a change of the inner storage's size, in bytes."""
        memory.give(self.size)
        self.size = size
        memory.take(size)

    def lose_values(self) -> None:
        """Go on without values, the same in size and shape."""
        outer = self.base.untyped_storage().outer  # type: ignore[attr-defined]
        self.base = self.base.to("meta")
        self.base.untyped_storage().outer = outer  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, object]) -> Held:
        # `copy.deepcopy` of a storage copies its `__dict__`; the copy gets an inner side of its own.
        return Held(self.base.clone(), self.size, self.form)

    def __reduce__(self) -> Any:
        raise TypeError("the inner side of a simulated tensor cannot be serialized")


set_source = cpu_kernel(torch.ops.aten.set_.source_Storage_storage_offset)
_as_strided = cpu_kernel(torch.ops.aten.as_strided.default)
_view_dtype = cpu_kernel(torch.ops.aten.view.dtype)
_nbytes = torch._C.StorageBase.nbytes  # type: ignore[attr-defined]


def new_outer(inner: Tensor) -> Tensor:
    """Give a new outer tensor around `inner`, whose storage no outer tensor has yet."""
    storage = inner.untyped_storage()
    size = _nbytes(storage)
    # Inlined: this is the hottest function there is.
    shape, stride, dtype = inner.shape, inner.stride(), inner.dtype
    form = known_geometry((shape, stride, dtype)) or geometry(shape, stride, dtype)
    if form.span_bytes == size and form.can_be_made and not inner.storage_offset():
        outer = form.make(size)
        box = Held(inner, size, form)
    else:
        flat = Geometry((size,), (1,), torch.uint8, is_known=False).make(size)
        empty = _view_dtype(_as_strided(flat, (0,), (1,), 0), dtype)
        outer = set_source(empty, flat.untyped_storage(), inner.storage_offset(), shape, stride)
        whole = _whole(inner)
        box = Held(whole, size, geometry(whole.shape, whole.stride(), dtype))
    there = outer.untyped_storage()
    there.held = box  # type: ignore[attr-defined]
    storage.outer = weakref.ref(there)  # type: ignore[attr-defined]
    return outer


def _whole(inner: Tensor) -> Tensor:
    """Give all of the storage as one flat tensor of the same dtype."""
    count = inner.untyped_storage().nbytes() // inner.itemsize
    flat = torch.empty(0, dtype=inner.dtype, device=inner.device)
    return flat.set_(inner.untyped_storage(), 0, (count,), (1,))


ORIGIN = "_shapeguard_origin"
"""Attribute of a storage that is not ours: the user's line that brought its data to the device."""


TOKENIZED = "_shapeguard_tokenized"
"""Attribute of a storage of the host: the user's line that called the tokenizer, with the length (`size`) it gave."""


def held(outer: Tensor) -> Held | None:
    """Give the inner side of an outer tensor's storage; None for a tensor that is not ours (a fake one)."""
    return outer.untyped_storage().__dict__.get("held")


def origin_of(tensor: Tensor) -> Any:
    """Give the user's line that brought the tensor's data to the device; None for one that isn't there."""
    if tensor.device.type != "neuron":
        return None
    box = held(tensor)
    # A storage of hardware has no inner side; the adapter keeps the line on the storage itself.
    return (box.origin if box is not None else None) or getattr(tensor.untyped_storage(), ORIGIN, None)


def tokenized_of(tensor: Tensor) -> Any:
    """Give the line whose tokenizer made the tensor's data, on either side; None for other data."""
    storage = tensor.untyped_storage()
    box = storage.__dict__.get("held")
    return box.tokenized if box is not None else getattr(storage, TOKENIZED, None)


def unwrap(outer: Tensor) -> Tensor:
    """Give the inner tensor that has the same elements as `outer`, sharing memory with it."""
    box = outer.untyped_storage().held  # type: ignore[attr-defined]
    base: Tensor = box.base
    stride, offset, dtype = outer.stride(), outer.storage_offset(), outer.dtype
    if outer.shape == box.shape and dtype is box.dtype and stride == box.stride and offset == box.offset:
        inner = base
    elif dtype is box.dtype:
        inner = torch.as_strided(base, outer.shape, stride, offset)
    else:
        inner = torch.empty(0, dtype=dtype, device=base.device)
        inner.set_(base.untyped_storage(), offset, outer.shape, stride)
    return _with_bits(inner, outer) if outer.is_neg() or outer.is_conj() else inner


def _with_bits(inner: Tensor, outer: Tensor) -> Tensor:
    if outer.is_conj():
        inner = torch._conj(inner)
    if outer.is_neg():
        inner = torch._neg_view(inner)
    return inner


def wrap(inner: Tensor) -> Tensor:
    """Give the outer tensor of `inner`: a view where its storage has an outer one already, a new one otherwise."""
    if inner.is_neg() or inner.is_conj():
        inner = inner.resolve_conj().resolve_neg()
    known = inner.untyped_storage().outer  # type: ignore[attr-defined]
    storage = known() if known is not None else None
    if storage is None:
        return new_outer(inner)
    return view_of(storage, inner)


def view_of(storage: Any, like: Tensor) -> Tensor:
    """Give an outer tensor over an outer storage, with the geometry and dtype of `like`."""
    form = geometry((0,), (1,), like.dtype)
    empty = form.make(0) if form.can_be_made else _view_dtype(_EMPTY.make(0), like.dtype)
    return set_source(empty, storage, like.storage_offset(), like.shape, like.stride())


_EMPTY = geometry((0,), (1,), torch.uint8)
