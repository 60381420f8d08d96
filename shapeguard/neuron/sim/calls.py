"""The way into a kernel: arguments become inner ones, and a quick key tells whether this call has been counted before.

Both are made in one pass over the arguments, since this runs for every operator. No strings are built here: a whole
tensor is known by its geometry's object, numbers by their type, or by type and value where the key has the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.sim.counting import NOT_IN_KEY, Plan
from shapeguard.neuron.sim.device import NAME, Device
from shapeguard.neuron.sim.storage import Tensor, unwrap

Op = torch._ops.OpOverload
Note = Callable[[Any], None]
Enter = Callable[[tuple[Any, ...], Note], list[Any]]

NUMBERS = (int, float, complex)
_PLAIN = (int, bool, type(None))


def entering(op: Op, plan: Plan, device: Device) -> Enter:
    """Give what turns the positional arguments of the overload into inner ones and notes their part of the quick key.

    A Python number may arrive in a tensor's place (`x % 3`): torch lets only a few operators take it so, for the others
    it becomes a tensor again.
    """
    by_value = plan.by_value
    numbers = number_places(op)
    # Torch's boxing sees to it that these hold nothing but whole numbers.
    lists = frozenset(i for i, a in enumerate(op._schema.arguments) if "List[int]" in str(a.type))

    def enter(args: tuple[Any, ...], note: Note) -> list[Any]:
        inner: list[Any] = []
        add = inner.append
        for i, value in enumerate(args):
            if isinstance(value, Tensor):
                add(_enter_tensor(device, value, note))
            elif value.__class__ in _PLAIN and i not in numbers:
                add(value)
                note(value.__class__)
                if by_value[i]:
                    note(value)
            elif i in lists and by_value[i] and value is not None:
                add(value)
                note(tuple(value))
            else:
                add(_enter_other(device, value, note, by_value[i]) if i not in numbers else _tensor(value, note))
        return inner

    return enter


def entering_keywords(plan: Plan, device: Device) -> Callable[[dict[str, Any], Note], dict[str, Any]]:
    """Give what does the same for keyword arguments."""
    by_name = plan.by_name

    def enter(kwargs: dict[str, Any], note: Note) -> dict[str, Any]:
        inner = {}
        for name, value in kwargs.items():
            if name in NOT_IN_KEY and name not in by_name:
                inner[name] = device.enter(value)
            else:
                note(name)
                if isinstance(value, Tensor):
                    inner[name] = _enter_tensor(device, value, note)
                else:
                    inner[name] = _enter_other(device, value, note, name in by_name)
        return inner

    return enter


def _enter_tensor(device: Device, value: Tensor, note: Note) -> Tensor:
    if value.is_cpu:
        note((value.shape, value.dtype, value.stride()))
        return device.enter_tensor(value)
    box = value.untyped_storage().held  # type: ignore[attr-defined]
    shape, stride, offset, dtype = value.shape, value.stride(), value.storage_offset(), value.dtype
    if shape == box.shape and stride == box.stride and offset == box.offset and dtype is box.dtype:
        form = box.form
        note(form if form.is_known else (shape, dtype, stride))
        return unwrap(value) if value.is_neg() or value.is_conj() else box.base
    note((shape, dtype) if value.is_contiguous() else (shape, dtype, stride, offset))
    return unwrap(value)


def _enter_other(device: Device, value: Any, note: Note, by_value: bool) -> Any:
    if isinstance(value, (list, tuple)) and not by_value:
        parts: list[Any] = []
        inner = [
            _enter_tensor(device, item, parts.append)
            if isinstance(item, Tensor)
            else _enter_other(device, item, parts.append, False)
            for item in value
        ]
        note(tuple(parts))
        return inner
    # `str` as in the key: 1 and 1.0 and True differ there, but are equal as values.
    note(str(value) if by_value else value.__class__)
    return device.inner if isinstance(value, torch.device) and value.type == NAME else value


def _tensor(value: Any, note: Note) -> Any:
    note(value.__class__)
    return torch.tensor(value) if isinstance(value, NUMBERS) else value


def number_places(op: Op) -> frozenset[int]:
    """Give the places of tensors where a Python number becomes a tensor again."""
    if torch._C._should_allow_numbers_as_tensors(op._schema.name.removeprefix("aten::")):
        return frozenset()
    return frozenset(i for i, a in enumerate(op._schema.arguments) if str(a.type) == "Tensor" and not a.kwarg_only)
