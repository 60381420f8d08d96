"""Allocation and copies: from and to the host, and on the device (facts 1.3 and 1.4)."""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import torch

from shapeguard.core.events import Sink
from shapeguard.neuron.sim.device import NAME, Device
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.meta import keeps_values, settle
from shapeguard.neuron.sim.specs import spec_of
from shapeguard.neuron.sim.storage import Tensor, held, new_outer, tokenized_of, unwrap

_PLAIN = (None, torch.contiguous_format, torch.preserve_format)


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    return {**_allocation(device), **_copies(device), **_host_memory()}


def _allocation(device: Device) -> dict[str, Kernel]:
    inner, is_meta = device.inner, device.is_meta

    def empty(
        size: Any,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> Tensor:
        _refuse_format(memory_format)
        _refuse_layout(layout)
        if is_meta and keeps_values(dtype or torch.get_default_dtype(), prod(size), is_known=True):
            return new_outer(torch.zeros(size, dtype=dtype))
        return new_outer(torch.empty(size, dtype=dtype, device=inner))

    def empty_strided(
        size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
    ) -> Tensor:
        if is_meta and keeps_values(dtype or torch.get_default_dtype(), prod(size), is_known=True):
            return new_outer(torch.empty_strided(size, stride, dtype=dtype).zero_())
        return new_outer(torch.empty_strided(size, stride, dtype=dtype, device=inner))

    return {"empty.memory_format": empty, "empty_strided": empty_strided}


def _refuse_format(memory_format: Any) -> None:
    if memory_format not in _PLAIN:
        raise RuntimeError(f"neuron supports only contiguous and preserve memory formats, not {memory_format}")


def _refuse_layout(layout: Any) -> None:
    if layout not in (None, torch.strided):
        raise RuntimeError(f"neuron has no tensors of layout {layout}: keep sparse tensors on the CPU")


def _copies(device: Device) -> dict[str, Kernel]:
    def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
        _move(device, self, src)
        return self

    def copy_from(self: Tensor, dst: Tensor, non_blocking: bool = False) -> Tensor:
        _move(device, dst, self)
        return dst

    def to_copy(
        self: Tensor,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return _convert(owner, self, dtype or self.dtype, device if device is not None else self.device, memory_format)

    def clone(self: Tensor, *, memory_format: Any = None) -> Tensor:
        _refuse_format(memory_format)
        if getattr(_explicit, "is_contiguous_call", False):
            owner.counter.contiguous(spec_of(self))
        else:
            owner.counter.copied(self, self.dtype)
        return new_outer(unwrap(self).clone(memory_format=memory_format or torch.preserve_format))

    owner = device
    return {
        "copy_": copy_,
        "_copy_from": copy_from,
        "_copy_from_and_resize": copy_from,
        "_to_copy": to_copy,
        "contiguous": contiguous,
        "clone": clone,
    }


_explicit = threading.local()
"""Tells a clone that `contiguous()` asked for it: Neuron has a kernel of its own for that, keyed by the layout."""


def contiguous(self: Tensor, *, memory_format: Any = torch.contiguous_format) -> Tensor:
    """Give the tensor itself, or a copy that autograd sees: registered above autograd, as there (facts 1.2)."""
    _refuse_format(memory_format)
    if self.is_contiguous():
        return self
    _explicit.is_contiguous_call = True
    try:
        return self.clone(memory_format=torch.contiguous_format)
    finally:
        _explicit.is_contiguous_call = False


def _move(device: Device, to: Tensor, source: Tensor) -> None:
    """Copy the data of one tensor into another; at least one of them is on the device."""
    here = unwrap(source) if source.device.type == NAME else source
    there = unwrap(to) if to.device.type == NAME else to
    if source.device.type == NAME and to.device.type == NAME:
        device.counter.copied(source, to.dtype, into=to)
        _fill(there, here)
    elif to.device.type == NAME:
        _remember_origin(device.sink, to, source)
        _fill(there, here)
    else:
        _made_contiguous(device, source)
        _read(device, to, here)


def _made_contiguous(device: Device, source: Tensor) -> None:
    """Count what makes a tensor contiguous before it goes to the host (facts 1.3)."""
    if not source.is_contiguous():
        device.counter.contiguous(spec_of(source))


def _fill(there: Tensor, here: Tensor) -> None:
    """Copy between inner tensors, of which under `--inner meta` either may have no values."""
    if here.is_meta and not there.is_meta:
        there.zero_()
    else:
        there.copy_(here.to(there.device))


def _read(device: Device, to: Tensor, inner: Tensor) -> None:
    """Copy to the host; what `meta` doesn't have is read back as zeros."""
    if inner.is_meta:
        device.tell_once("value-read", "the program read tensor values; `--inner meta` gives zeros")
        to.zero_()
    else:
        to.copy_(inner)


def _convert(device: Device, source: Tensor, dtype: torch.dtype, where: torch.device, memory_format: Any) -> Tensor:
    _refuse_format(memory_format)
    if where.type == NAME:
        if source.device.type == NAME:
            device.counter.copied(source, dtype)
            inner = unwrap(source).to(dtype, copy=True)
            return new_outer(settle(inner, is_known=True) if device.is_meta else inner)
        keeps = device.is_meta and keeps_values(dtype, source.numel(), is_known=True)
        outer = new_outer(source.to("cpu" if keeps else device.inner, dtype, copy=True))
        _remember_origin(device.sink, outer, source)
        return outer
    _made_contiguous(device, source)
    inner = unwrap(source)
    if inner.is_meta and where.type != "meta":
        device.tell_once("value-read", "the program read tensor values; `--inner meta` gives zeros")
        return torch.zeros(source.shape, dtype=dtype, device=where)
    return inner.to(device=where, dtype=dtype, copy=True)


def _remember_origin(sink: Sink, outer: Tensor, source: Tensor) -> None:
    """Keep the user's lines that made this data and brought it to the device: they may own a shape that changes."""
    box = held(outer)
    if box is not None and box.origin is None:
        box.origin = sink.site()
        box.tokenized = tokenized_of(source)


def _host_memory() -> dict[str, Kernel]:
    def record_stream(self: Tensor, s: Any) -> None:
        return None

    return {"record_stream": record_stream, **pinned()}


def pinned() -> dict[str, Kernel]:
    """Give the kernels for pinned memory, of the device and of the host: every pointer counts as pinned (facts 4.2)."""

    def is_pinned(self: Tensor, device: Any = None) -> bool:
        return self.device.type == "cpu"

    def pin_memory(self: Tensor, device: Any = None) -> Tensor:
        if self.device.type != "cpu":
            raise RuntimeError(f"cannot pin '{self.type()}': only dense CPU tensors can be pinned")
        return self

    return {"is_pinned": is_pinned, "_pin_memory": pin_memory}
