"""The boxed fallback: an operator that TorchNeuron does not register runs on the host, its data copied both ways."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from shapeguard.neuron.sim.calls import NUMBERS, number_places
from shapeguard.neuron.sim.device import NAME, Device, leave
from shapeguard.neuron.sim.kernels import follow, short_name, written
from shapeguard.neuron.sim.meta import runner
from shapeguard.neuron.sim.storage import Tensor
from shapeguard.neuron.sim.torch_private import cpu_kernel, hide_from_dynamo

Op = torch._ops.OpOverload

# These take a tensor of the host beside those of the device, as every backend lets them.
_MIXED = frozenset({"aten::index_put_", "aten::index_put", "aten::_index_put_impl_", "aten::_fused_adamw_"})


@cache
def _is_view(op: Op) -> bool:
    """Tell whether the result shares memory with an argument and nothing is written."""
    returns = op._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


@cache
def _written_positions(op: Op) -> tuple[tuple[int, str], ...]:
    names = set(written(op))
    return tuple((i, a.name) for i, a in enumerate(op._schema.arguments) if a.name in names)


_number_places = cache(number_places)


def make_fallback(device: Device) -> Any:
    """Give the function that torch calls for every operator without a kernel of its own."""

    def fallback(op: Op, *args: Any, **kwargs: Any) -> Any:
        if _is_view(op):
            return cpu_kernel(op)(*args, **kwargs)
        is_counted = op._schema.name.startswith("aten::")
        size = _read_bytes(op, args, kwargs) if is_counted else 0
        result = _run(device, op, args, kwargs)
        if is_counted:
            device.counter.fallback(short_name(op), size + _size_bytes((result,)))
        return result

    return hide_from_dynamo(fallback)


def _run(device: Device, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    places = _written_positions(op)
    outers = {
        name: kwargs[name] if name in kwargs else args[i] for i, name in places if name in kwargs or i < len(args)
    }
    if op._schema.name in _MIXED:
        inner_args = [_enter_mixed(device, value) for value in args]
    else:
        places_of_numbers = _number_places(op)
        inner_args = [
            torch.tensor(value) if i in places_of_numbers and isinstance(value, NUMBERS) else device.enter(value)
            for i, value in enumerate(args)
        ]
    inner_kwargs = {name: device.enter(value) for name, value in kwargs.items()}
    for i, name in places:
        if name in inner_kwargs:
            inner_kwargs[name] = _alias(inner_kwargs[name])
        elif i < len(inner_args):
            inner_args[i] = _alias(inner_args[i])
    inner_written = {
        name: inner_kwargs[name] if name in inner_kwargs else inner_args[i]
        for i, name in places
        if name in inner_kwargs or i < len(inner_args)
    }
    result = runner(device, op)(*inner_args, **inner_kwargs)
    for name, outer in outers.items():
        if outer is not None:
            follow(outer, inner_written[name])
    return _returned(op, result, outers)


def _returned(op: Op, result: Any, outers: dict[str, Any]) -> Any:
    """Give the written arguments where the schema returns them, the outer side of the rest."""
    returns = op._schema.returns
    if not outers or not any(r.alias_info is not None for r in returns):
        return leave(result)
    by_set = {}
    for argument in op._schema.arguments:
        if argument.alias_info is not None and argument.name in outers:
            by_set[frozenset(argument.alias_info.before_set)] = outers[argument.name]
    values = result if isinstance(result, tuple) else (result,)
    given = tuple(
        by_set.get(frozenset(r.alias_info.before_set)) if r.alias_info is not None else leave(value)
        for r, value in zip(returns, values, strict=True)
    )
    return given[0] if len(returns) == 1 else given


def _alias(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    return [_alias(item) for item in value] if isinstance(value, list) else value


def _enter_mixed(device: Device, value: Any) -> Any:
    if isinstance(value, Tensor):
        return device.enter_anywhere(value)
    if isinstance(value, (list, tuple)):
        return [_enter_mixed(device, item) for item in value]
    return value


def _read_bytes(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Give the bytes that go to the host: of all tensors but those that are only written (`out`)."""
    outs = {a.name for a in op._schema.arguments if a.kwarg_only and a.name in written(op)}
    return _size_bytes((*args, *[value for name, value in kwargs.items() if name not in outs]))


def _size_bytes(values: tuple[Any, ...]) -> int:
    total = 0
    for value in values:
        if isinstance(value, Tensor):
            if value.device.type == NAME:
                total += value.numel() * value.itemsize
        elif isinstance(value, (list, tuple)):
            total += _size_bytes(tuple(value))
    return total
