"""`--inner meta`: no data. What depends on values gets zeros, masks count as all true, and the run says where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.storage import Tensor

Op = torch._ops.OpOverload

# Their result's shape depends on values, and `meta` either refuses or makes up an unbacked size.
_VALUE_SHAPES = frozenset(
    {"aten::unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::bincount"}
)


def runner(device: Device, op: Op) -> Callable[..., Any]:
    """Give what runs the overload on inner tensors: itself, or with a rescue where `meta` has no kernel."""
    if not device.is_meta:
        return op
    if op._schema.name in _VALUE_SHAPES:
        return lambda *args, **kwargs: _on_zeros(device, op, args, kwargs)

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return op(*args, **kwargs)
        except NotImplementedError:
            return _on_zeros(device, op, args, kwargs)

    return run


def _on_zeros(device: Device, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator that `meta` cannot on zeros of the same shapes, and keep only shapes and dtypes."""
    name = op.name().removeprefix("aten::")
    message = f"`{name}` depends on values that `--inner meta` does not have; it was run on zeros"
    device.tell_once("value-read", message, op=name)
    return _to_meta(op(*[_zeros(value) for value in args], **{k: _zeros(v) for k, v in kwargs.items()}))


def _zeros(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.zeros(value.shape, dtype=value.dtype) if value.is_meta else value
    if isinstance(value, (list, tuple)):
        return [_zeros(item) for item in value]
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _to_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_like(value, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_to_meta(item) for item in value)
    return value
