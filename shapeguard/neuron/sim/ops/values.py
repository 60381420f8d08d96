"""Operators whose result, or whose graph, depends on values: reads, masks, indices (facts 1.3 and 1.6)."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.model.eager import Call, Value
from shapeguard.neuron.model.extras import masked_index, masked_put
from shapeguard.neuron.sim.counting import Plan, describe
from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.meta import runner, zero_kept
from shapeguard.neuron.sim.specs import spec_of
from shapeguard.neuron.sim.storage import Tensor, unwrap, wrap
from shapeguard.neuron.sim.torch_private import overload

_MASKS = (torch.bool, torch.uint8)


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    return {**_reads(device), **_indices(device), **_selections(device), **_counted_by_result(device)}


def _reads(device: Device) -> dict[str, Kernel]:
    def local_scalar_dense(self: Tensor) -> Any:
        inner = unwrap(self)
        if inner.is_meta:
            device.tell_once("value-read", "the program read tensor values; `--inner meta` gives zeros")
            return torch.zeros((), dtype=self.dtype).item()
        return inner.item()

    def equal(self: Tensor, other: Tensor) -> bool:
        a, b = device.enter_tensor(self), device.enter_tensor(other)
        if a.is_meta or b.is_meta:
            device.tell_once("value-read", "the program compared tensors; `--inner meta` takes them as equal")
            return self.shape == other.shape
        return torch.equal(a, b)

    return {"_local_scalar_dense": local_scalar_dense, "equal": equal}


def _indices(device: Device) -> dict[str, Kernel]:
    index_plan = _plan("index.Tensor")
    put_plan = _plan("_index_put_impl_")
    run_index = runner(device, _op("index.Tensor"))
    run_put = runner(device, _op("_index_put_impl_"))

    def index(self: Tensor, indices: Any) -> Tensor:
        inner = [None if each is None else device.enter_anywhere(each) for each in indices]
        masks = [each for each in inner if each is not None and each.dtype in _MASKS]
        result = run_index(unwrap(self), _without_masks(device, inner) if masks and device.is_meta else inner)
        if masks:
            specs = [None if each is None else spec_of(each) for each in indices]
            *nonzeros, call = masked_index(spec_of(self), specs, _num_true(masks[0]))
            # Facts 1.3: of an empty result only the mask's own kernel runs.
            for each in (*nonzeros, call) if result.numel() else nonzeros:
                device.counter.note(each)
        else:
            device.counter.eager(index_plan, (self, indices), {})
        return wrap(result)

    def index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False) -> Tensor:
        inner = [None if each is None else device.enter_anywhere(each) for each in indices]
        places = _without_masks(device, inner) if device.is_meta else inner
        run_put(unwrap(self), places, device.enter_anywhere(values), accumulate, unsafe)
        masks = [each for each in inner if each is not None and each.dtype in _MASKS]
        if masks:
            call = describe(put_plan, (self, indices, values, accumulate, unsafe), {}, self)
            for each in masked_put(call, _num_true(masks[0]), is_one_value=values.numel() == 1):
                device.counter.note(each)
        else:
            device.counter.eager(put_plan, (self, indices, values, accumulate, unsafe), {}, self)
        return self

    return {"index.Tensor": index, "_index_put_impl_": index_put}


def _selections(device: Device) -> dict[str, Kernel]:
    def nonzero(self: Tensor) -> Tensor:
        device.counter.note(Call(op="nonzero", arguments=(("self", spec_of(self)),)))
        inner = unwrap(self)
        if inner.is_meta:
            device.tell_once(
                "value-read", "`nonzero` depends on values; `--inner meta` takes all as true", op="nonzero"
            )
            return wrap(torch.empty((self.numel(), self.dim()), dtype=torch.int64, device="meta"))
        return wrap(inner.nonzero())

    def masked_select(self: Tensor, mask: Tensor) -> Tensor:
        inner, inner_mask = unwrap(self), unwrap(mask)
        if inner_mask.is_meta:
            device.tell_once(
                "value-read", "`masked_select` depends on values; `--inner meta` takes all as true", op="masked_select"
            )
            size = torch.broadcast_shapes(self.shape, mask.shape).numel()
        else:
            size = int(inner_mask.expand(torch.broadcast_shapes(self.shape, mask.shape)).count_nonzero())
        if inner.is_meta or inner_mask.is_meta:
            result = torch.empty(size, dtype=self.dtype, device="meta")
        else:
            result = inner.masked_select(inner_mask)
        masked = spec_of(mask)
        arguments = (("self", spec_of(self)), ("mask", masked), ("count", Value(str(size))))
        if size:
            device.counter.note(Call(op="masked_select", arguments=arguments))
        else:
            # Facts 1.3: what would give nothing doesn't run; the mask was counted before.
            device.counter.note(Call(op="sum", arguments=(("self", masked),)))
        return wrap(result)

    histc_plan = _plan("histc")

    def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
        result = count_in_bins(unwrap(self), bins, min, max)
        device.counter.eager(histc_plan, (self, bins, min, max), {})
        return wrap(result)

    return {"nonzero": nonzero, "masked_select": masked_select, "histc": histc}


def count_in_bins(inner: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Do what `histc` does, also for integers, which the CPU does not count: experts are chosen so."""
    wide = inner if inner.is_floating_point() else inner.double()
    return zero_kept(torch.histc(wide, bins, min, max).to(inner.dtype))


def _counted_by_result(device: Device) -> dict[str, Kernel]:
    """Give the operators whose output size comes from values and stands in the key (facts 1.6)."""
    run_one_hot, run_repeat = runner(device, _op("one_hot")), runner(device, _op("repeat_interleave.Tensor"))

    def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
        result = run_one_hot(unwrap(self), num_classes)
        arguments = (("self", spec_of(self)), ("num_classes", Value(str(result.shape[-1]))))
        device.counter.note(Call(op="one_hot", arguments=arguments))
        return wrap(result)

    def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
        result = run_repeat(unwrap(repeats), output_size=output_size)
        arguments = (("repeats", spec_of(repeats)), ("output_size", Value(str(result.shape[0]))))
        device.counter.note(Call(op="repeat_interleave.Tensor", arguments=arguments))
        return wrap(result)

    return {"one_hot": one_hot, "repeat_interleave.Tensor": repeat_interleave}


def _num_true(mask: Tensor) -> int:
    return mask.numel() if mask.is_meta else int(mask.count_nonzero())


def _op(name: str) -> torch._ops.OpOverload:
    op = overload(name)
    assert op is not None
    return op


def _plan(name: str) -> Plan:
    return Plan(_op(name), name)


def _without_masks(device: Device, indices: list[Any]) -> list[Any]:
    """Give indices in place of masks: those that a known mask selects, all where its values are not there."""
    found: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in _MASKS:
            found.append(index)
        elif index.is_meta:
            device.tell_once(
                "value-read", "a boolean mask depends on values; `--inner meta` takes all as true", op="index.Tensor"
            )
            found += [torch.empty(index.numel(), dtype=torch.int64, device="meta")] * index.dim()
        else:
            found += list(index.nonzero(as_tuple=True))
    return found
