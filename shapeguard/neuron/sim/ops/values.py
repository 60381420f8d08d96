"""Operators whose result, or whose graph, depends on values: reads, masks, indices (facts 1.3 and 1.6)."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.model.eager import Call, Spec, Value
from shapeguard.neuron.model.extras import masked_index
from shapeguard.neuron.sim.counting import Plan, describe, spec_of
from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.storage import Tensor, unwrap, wrap
from shapeguard.neuron.sim.torch_private import overload

_MASKS = (torch.bool, torch.uint8)


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    index_plan = _plan("index.Tensor")
    put_plan = _plan("_index_put_impl_")

    def local_scalar_dense(self: Tensor) -> Any:
        inner = unwrap(self)
        if inner.is_meta:
            device.tell_once("value-read", "the program read tensor values; `--inner meta` gives zeros")
            return torch.zeros((), dtype=self.dtype).item()
        return inner.item()

    def index(self: Tensor, indices: Any) -> Tensor:
        inner = [None if each is None else device.enter_anywhere(each) for each in indices]
        masks = [each for each in inner if each is not None and each.dtype in _MASKS]
        if masks and device.is_meta:
            inner = _all_true(device, inner)
        result = torch.ops.aten.index.Tensor(unwrap(self), inner)
        if masks:
            count = int(masks[0].count_nonzero()) if not device.is_meta else masks[0].numel()
            specs = tuple(None if each is None else spec_of(each) for each in indices)
            for call in masked_index(spec_of(self), specs, count):
                device.counter.note(call)
        else:
            device.counter.eager(index_plan, (self, indices), {})
        return wrap(result)

    def index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False) -> Tensor:
        inner = [None if each is None else device.enter_anywhere(each) for each in indices]
        if device.is_meta:
            inner = _all_true(device, inner)
        torch.ops.aten._index_put_impl_(unwrap(self), inner, device.enter_anywhere(values), accumulate, unsafe)
        call = describe(put_plan, (self, indices, values, accumulate, unsafe), {}, self)
        device.counter.note(call)
        return self

    def nonzero(self: Tensor) -> Tensor:
        device.counter.note(Call(op="nonzero", arguments=(("self", spec_of(self)),)))
        inner = unwrap(self)
        if inner.is_meta:
            device.tell_once("value-read", "`nonzero` depends on values; `--inner meta` takes all as true", op="nonzero")
            return wrap(torch.empty((self.numel(), self.dim()), dtype=torch.int64, device="meta"))
        return wrap(inner.nonzero())

    def masked_select(self: Tensor, mask: Tensor) -> Tensor:
        inner, inner_mask = unwrap(self), unwrap(mask)
        if device.is_meta:
            shape = torch.broadcast_shapes(self.shape, mask.shape)
            device.tell_once(
                "value-read", "`masked_select` depends on values; `--inner meta` takes all as true", op="masked_select"
            )
            result = torch.empty(shape.numel(), dtype=self.dtype, device="meta")
        else:
            result = inner.masked_select(inner_mask)
        bare: tuple[tuple[str, Spec | Value], ...] = (
            ("self", spec_of(self)), ("mask", spec_of(mask)), ("count", Value(str(result.numel()))),
        )
        device.counter.note(Call(op="masked_select", arguments=bare))
        return wrap(result)

    histc_plan = _plan("histc")

    def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
        inner = unwrap(self)
        # The CPU has this for floating point only; the device counts integers too (experts are chosen so).
        wide = inner if inner.is_floating_point() else inner.double()
        result = torch.histc(wide, bins, min, max).to(inner.dtype)
        device.counter.eager(histc_plan, (self, bins, min, max), {})
        return wrap(result)

    def equal(self: Tensor, other: Tensor) -> bool:
        a, b = device.enter_tensor(self), device.enter_tensor(other)
        if device.is_meta:
            device.tell_once("value-read", "the program compared tensors; `--inner meta` takes them as equal")
            return self.shape == other.shape
        return torch.equal(a, b)

    return {
        "_local_scalar_dense": local_scalar_dense,
        "index.Tensor": index,
        "_index_put_impl_": index_put,
        "nonzero": nonzero,
        "masked_select": masked_select,
        "equal": equal,
        "histc": histc,
    }


def _plan(name: str) -> Plan:
    op = overload(name)
    assert op is not None
    return Plan(op, name)


def _all_true(device: Device, indices: list[Any]) -> list[Any]:
    """Give indices of the size that masks of all Trues select: what the meta device takes every mask for."""
    found: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in _MASKS:
            found.append(index)
            continue
        device.tell_once(
            "value-read", "a boolean mask depends on values; `--inner meta` takes all as true", op="index.Tensor"
        )
        found += [torch.empty(index.numel(), dtype=torch.int64, device="meta")] * index.dim()
    return found
