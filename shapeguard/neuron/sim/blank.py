"""Makes outer tensors with nothing inside: torch reads shape, strides and address from a DLPack capsule.

One capsule serves all tensors of one geometry: only the address is new each time. Torch keeps a pointer to what a
capsule holds for as long as the tensor's storage lives, so none is ever freed.
"""

from __future__ import annotations

import ctypes
import threading

import torch

from shapeguard.neuron.sim.torch_private import from_dlpack

Tensor = torch.Tensor
Sizes = tuple[int, ...]

_PAGE = 4096
_FIRST_ADDRESS = 1 << 44
_EXTENSION_DEVICE = 12  # kDLExtDev: what DLPack calls PrivateUse1
_MAX_DIMS = 64
_MAX_KNOWN = 4096
"""Geometries with a capsule of their own; a program with more of them gets a common one, filled in anew each time."""


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


_NAME = b"dltensor"
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _Capsule:
    """Memory that DLPack describes a tensor in."""

    __slots__ = ("managed", "object", "shape", "strides", "tensor")

    def __init__(self, num_dims: int) -> None:
        self.managed = _Managed()
        self.shape = (ctypes.c_int64 * num_dims)()
        self.strides = (ctypes.c_int64 * num_dims)()
        self.tensor = tensor = self.managed.tensor
        tensor.device_type = _EXTENSION_DEVICE
        tensor.lanes = 1
        tensor.shape = ctypes.addressof(self.shape)
        tensor.strides = ctypes.addressof(self.strides)
        self.object = _new_capsule(ctypes.addressof(self.managed), _NAME, None)

    def fill(self, shape: Sizes, stride: Sizes, code: tuple[int, int]) -> None:
        """Describe a tensor, all but its address."""
        count = len(shape)
        self.tensor.ndim = count
        self.tensor.code, self.tensor.bits = code
        self.shape[:count] = shape  # type: ignore[call-overload]
        self.strides[:count] = stride  # type: ignore[call-overload]


class _Space:
    """The addresses of the device: made up, unique, never mapped."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = _FIRST_ADDRESS


_CODES: dict[torch.dtype, tuple[int, int]] = {
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
_space = _Space()
_common = _Capsule(_MAX_DIMS)
# A capsule is named, filled in and read in three steps: no other thread may come between.
_lock = threading.Lock()


class Geometry:
    """Shape, strides and dtype of a tensor that starts at its storage's first byte."""

    __slots__ = ("_capsule", "_code", "dtype", "is_known", "shape", "span_bytes", "stride")

    def __init__(self, shape: Sizes, stride: Sizes, dtype: torch.dtype, *, is_known: bool) -> None:
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.span_bytes = _spans(shape, stride) * dtype.itemsize
        """Bytes from the first element to the end of the last one."""
        self._code = _CODES.get(dtype)
        self.is_known = is_known and self._code is not None
        """Whether every tensor of this geometry has this very object."""
        self._capsule: _Capsule | None = None
        if self.is_known and self._code is not None:
            self._capsule = _Capsule(len(shape))
            self._capsule.fill(shape, stride, self._code)

    @property
    def can_be_made(self) -> bool:
        """Tell whether DLPack has the dtype."""
        return self._code is not None

    def make(self, size_bytes: int) -> Tensor:
        """Give a new outer tensor, whose storage of `size_bytes` has an address of its own."""
        with _lock:
            capsule = self._capsule
            if capsule is None:
                capsule = _common
                assert self._code is not None
                capsule.fill(self.shape, self.stride, self._code)
            capsule.tensor.data = _space.next
            _space.next += (size_bytes // _PAGE + 1) * _PAGE
            _rename(capsule.object, _NAME)
            return from_dlpack(capsule.object)


_known: dict[tuple[Sizes, Sizes, torch.dtype], Geometry] = {}
known_geometry = _known.get
"""Look a geometry up by (shape, strides, dtype)."""


def geometry(shape: Sizes, stride: Sizes, dtype: torch.dtype) -> Geometry:
    """Give the geometry, the same object each time while there are not too many."""
    key = (shape, stride, dtype)
    found = _known.get(key)
    if found is None:
        found = Geometry(shape, stride, dtype, is_known=len(_known) < _MAX_KNOWN)
        if found.is_known:
            found = _known.setdefault(key, found)
    return found


def _spans(shape: Sizes, stride: Sizes) -> int:
    """Give how many elements lie between the first and the last one, both included."""
    last = 0
    for length, step in zip(shape, stride, strict=True):
        if length == 0:
            return 0
        last += (length - 1) * step
    return last + 1
