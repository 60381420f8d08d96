"""Tensors of the simulated device: where they keep their data, and how to get in and out.

A `neuron` tensor is a plain `torch.Tensor` (the outer one). Its untyped storage, a Python object that lives as long
as torch's own StorageImpl, carries a `Held`: the inner tensor on the CPU or on `meta` with the real data. Views,
`.data =`, `detach`, `Parameter`, `set_` keep working because identity sits in the storage, and torch never looks at the
outer storage's address: it is made up, unique, and not mapped.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import torch

from shapeguard.neuron.sim.torch_private import cpu_kernel, from_dlpack

Tensor = torch.Tensor

_PAGE = 4096
_FIRST_ADDRESS = 1 << 44
_EXTENSION_DEVICE = 12  # kDLExtDev: what DLPack calls PrivateUse1
_MAX_DIMS = 64


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    # The deleter stays NULL: one of ours would be called after the interpreter is gone.
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Memory:
    """Live bytes and tensors of the device, as its memory statistics report them."""

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

    __slots__ = ("__weakref__", "base", "origin", "shape", "size", "stride")

    def __init__(self, base: Tensor, size: int) -> None:
        self.base = base
        self.shape = base.shape
        self.stride = base.stride()
        self.size = size
        self.origin: Any = None
        """The site of the copy that brought the data from the host, if one did."""
        memory.take(size)

    def __del__(self, give: Any = memory.give) -> None:
        # The default keeps the counter reachable while the interpreter shuts down.
        give(self.size)

    def resize(self, size: int) -> None:
        """Follow a change of the inner storage's size, in bytes."""
        memory.give(self.size)
        self.size = size
        memory.take(size)

    def __deepcopy__(self, memo: dict[int, object]) -> Held:
        # `copy.deepcopy` of a storage copies its `__dict__`; the copy gets an inner side of its own.
        return Held(self.base.clone(), self.size)

    def __reduce__(self) -> Any:
        raise TypeError("the inner side of a simulated tensor cannot be serialized")


class _Template:
    """One DLPack capsule, filled in anew for every tensor: torch copies what it says and keeps no pointer to free."""

    def __init__(self) -> None:
        self.managed = _Managed()
        self.shape = (ctypes.c_int64 * _MAX_DIMS)()
        self.strides = (ctypes.c_int64 * _MAX_DIMS)()
        tensor = self.managed.tensor
        tensor.device_type = _EXTENSION_DEVICE
        tensor.lanes = 1
        tensor.shape = ctypes.addressof(self.shape)
        tensor.strides = ctypes.addressof(self.strides)
        self.tensor = tensor
        api = ctypes.pythonapi
        new = api.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.rename = api.PyCapsule_SetName
        self.rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
        self.capsule = new(ctypes.addressof(self.managed), _CAPSULE_NAME, None)
        self.next_address = _FIRST_ADDRESS


_CAPSULE_NAME = b"dltensor"
_template = _Template()
_DTYPES: dict[torch.dtype, tuple[int, int]] = {
    torch.int8: (0, 8),
    torch.int16: (0, 16),
    torch.int32: (0, 32),
    torch.int64: (0, 64),
    torch.uint8: (1, 8),
    torch.uint16: (1, 16),
    torch.uint32: (1, 32),
    torch.uint64: (1, 64),
    torch.float16: (2, 16),
    torch.float32: (2, 32),
    torch.float64: (2, 64),
    torch.bfloat16: (4, 16),
    torch.complex64: (5, 64),
    torch.complex128: (5, 128),
    torch.bool: (6, 8),
}

set_source = cpu_kernel(torch.ops.aten.set_.source_Storage_storage_offset)
_as_strided = cpu_kernel(torch.ops.aten.as_strided.default)
_view_dtype = cpu_kernel(torch.ops.aten.view.dtype)


def _blank(shape: tuple[int, ...], stride: tuple[int, ...], code: tuple[int, int], size: int) -> Tensor:
    """Give an outer tensor with a storage of its own, at an address of its own; nothing inside yet."""
    template = _template
    tensor = template.tensor
    ndim = len(shape)
    tensor.data = template.next_address
    template.next_address += (size // _PAGE + 1) * _PAGE
    tensor.ndim = ndim
    tensor.code, tensor.bits = code
    template.shape[:ndim] = shape  # type: ignore[call-overload]
    template.strides[:ndim] = stride  # type: ignore[call-overload]
    template.rename(template.capsule, _CAPSULE_NAME)
    return from_dlpack(template.capsule)


def new_outer(inner: Tensor) -> Tensor:
    """Give a new outer tensor around `inner`, whose storage no outer tensor has yet."""
    shape, stride = inner.shape, inner.stride()
    storage = inner.untyped_storage()
    size = storage.nbytes()
    code = _DTYPES.get(inner.dtype)
    if code is not None and inner.storage_offset() == 0 and _spans(shape, stride) * inner.itemsize == size:
        outer = _blank(shape, stride, code, size)
        held = Held(inner, size)
    else:
        flat = _blank((size,), (1,), (1, 8), size)
        empty = _view_dtype(_as_strided(flat, (0,), (1,), 0), inner.dtype)
        outer = set_source(empty, flat.untyped_storage(), inner.storage_offset(), shape, stride)
        held = Held(_whole(inner), size)
    _tie(outer.untyped_storage(), held, storage)
    return outer


def _whole(inner: Tensor) -> Tensor:
    """Give all of the storage as one flat tensor of the same dtype."""
    count = inner.untyped_storage().nbytes() // inner.itemsize
    flat = torch.empty(0, dtype=inner.dtype, device=inner.device)
    return flat.set_(inner.untyped_storage(), 0, (count,), (1,))


def _spans(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Give how many elements lie between the first and the last one, both included."""
    last = 0
    for length, step in zip(shape, stride, strict=True):
        if length == 0:
            return 0
        last += (length - 1) * step
    return last + 1


def _tie(outer: Any, held: Held, inner: Any) -> None:
    outer.held = held
    inner.outer = weakref.ref(outer)


def held(outer: Tensor) -> Held | None:
    """Give the inner side of an outer tensor's storage; None for a tensor that is not ours (a fake one)."""
    return outer.untyped_storage().__dict__.get("held")


def origin_of(tensor: Tensor) -> Any:
    """Give the user's line that brought the tensor's data to the device; None for one that isn't there."""
    box = held(tensor) if tensor.device.type == "neuron" else None
    return box.origin if box is not None else None


def unwrap(outer: Tensor) -> Tensor:
    """Give the inner tensor that has the same elements as `outer`, sharing memory with it."""
    box = outer.untyped_storage().held  # type: ignore[attr-defined]
    base: Tensor = box.base
    is_whole = outer.shape == box.shape and outer.dtype is base.dtype and outer.stride() == box.stride
    if is_whole and outer.storage_offset() == base.storage_offset():
        return _with_bits(base, outer) if outer.is_neg() or outer.is_conj() else base
    if outer.dtype is base.dtype:
        inner = torch.as_strided(base, outer.shape, outer.stride(), outer.storage_offset())
    else:
        inner = torch.empty(0, dtype=outer.dtype, device=base.device)
        inner.set_(base.untyped_storage(), outer.storage_offset(), outer.shape, outer.stride())
    return _with_bits(inner, outer)


def _with_bits(inner: Tensor, outer: Tensor) -> Tensor:
    if outer.is_conj():
        inner = torch._conj(inner)
    if outer.is_neg():
        inner = torch._neg_view(inner)
    return inner


def wrap(inner: Tensor) -> Tensor:
    """Give the outer tensor of `inner`: a view where its storage has an outer one already, a new one otherwise."""
    if inner.is_conj() or inner.is_neg():
        inner = inner.resolve_conj().resolve_neg()
    known = inner.untyped_storage().__dict__.get("outer")
    storage = known() if known is not None else None
    if storage is None:
        return new_outer(inner)
    return view_of(storage, inner)


def view_of(storage: Any, like: Tensor) -> Tensor:
    """Give an outer tensor over an outer storage, with the geometry and dtype of `like`."""
    code = _DTYPES.get(like.dtype)
    empty = _blank((0,), (1,), code, 0) if code else _view_dtype(_blank((0,), (1,), (1, 8), 0), like.dtype)
    return set_source(empty, storage, like.storage_offset(), like.shape, like.stride())
