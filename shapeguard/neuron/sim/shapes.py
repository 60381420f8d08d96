"""What an operator makes of tensors without values, remembered: torch's shape functions are Python and take long."""

from __future__ import annotations

from typing import Any

import torch

Tensor = torch.Tensor
Op = torch._ops.OpOverload

_MAX_KNOWN = 4096
"""Calls that are remembered of one operator; then it begins anew."""


class Shapes:
    """The results of one overload by the geometry of its inputs; only for calls whose tensors are all on `meta`."""

    __slots__ = ("_can_learn", "_is_tuple", "_writes_self", "known")

    def __init__(self, op: Op) -> None:
        schema = op._schema
        written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        aliases = any(r.alias_info is not None for r in schema.returns)
        kinds = [str(r.type) for r in schema.returns]
        self._writes_self = written == [0] and kinds == ["Tensor"] and str(schema.arguments[0].type) == "Tensor"
        self._is_tuple = len(kinds) > 1
        can_make = "Tensor" in kinds and set(kinds) <= {"Tensor", "int"}
        self._can_learn = can_make and (self._writes_self or not (written or aliases))
        self.known: dict[Any, tuple[Any, ...]] = {}

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Give what the result depends on; None where a tensor has values or the operator cannot be remembered."""
        if not self._can_learn:
            return None
        parts: list[Any] = []
        has_meta = False
        for value in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(value, Tensor):
                if not value.is_meta:
                    return None
                has_meta = True
                parts += (value.shape, value.stride(), value.dtype)
            elif value.__class__ is float:
                # A number in a calculation: it decides the dtype, not the shape.
                parts.append(float)
            elif value.__class__ in (list, tuple):
                nested = self.key(tuple(value), {}) if _has_tensor(value) else tuple(value)
                if nested is None:
                    return None
                has_meta = has_meta or _has_tensor(value)
                parts.append(nested)
            else:
                parts += (value.__class__, value)
        if not has_meta:
            return None
        return (*parts, *kwargs) if kwargs else tuple(parts)

    def learn(self, key: Any, result: Any, args: tuple[Any, ...]) -> None:
        """Remember a result that has no values."""
        if len(self.known) >= _MAX_KNOWN:
            self.known.clear()
        if self._writes_self:
            if result is args[0]:
                self.known[key] = ()
            return
        given = result if self._is_tuple else (result,)
        if all(each.is_meta and not each.storage_offset() for each in given if isinstance(each, Tensor)):
            self.known[key] = tuple(_form(each) if isinstance(each, Tensor) else each for each in given)

    def recall(self, key: Any, args: tuple[Any, ...]) -> Any:
        """Give what the call gave before, made anew."""
        if self._writes_self:
            return args[0]
        made = [_made(form) if form.__class__ is tuple else form for form in self.known[key]]
        return tuple(made) if self._is_tuple else made[0]


def _form(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype


def _made(form: tuple[Any, ...]) -> Tensor:
    shape, stride, dtype = form
    return torch.empty_strided(shape, stride, dtype=dtype, device="meta")


def _has_tensor(values: Any) -> bool:
    return any(isinstance(value, Tensor) for value in values)
