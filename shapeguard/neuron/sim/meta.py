"""`--inner meta`: no data, but for small tensors of whole numbers, which keep their values.

Control flow hangs on flags, counters and token ids: a loop that waits for "all sequences are finished" must end. So
integer and boolean tensors of up to `MAX_KEPT` elements live on the CPU. A single number of any other dtype does so for
as long as it follows from numbers of the host alone: a step that is counted, a rate, a scale.
What is not known counts as zero, in whole numbers too: a flag computed from logits is the flag that zeros would give.
Everything else is on `meta`.

The k largest of what is not known are spread evenly, row by row: experts are chosen so, each then gets as many tokens
as every other, on every rank, and sizes that are exchanged fit each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.shapes import Shapes
from shapeguard.neuron.sim.storage import Tensor
from shapeguard.neuron.sim.torch_private import direct

Op = torch._ops.OpOverload

MAX_KEPT = 2**18
"""Elements of the largest tensor of whole numbers that keeps its values."""
_MAX_BYTES_KEPT = 2**24
"""The same for bytes: ranks send each other objects as such tensors."""
_MAX_ZEROS = 4_000_000
"""Elements of unknown input that are taken as zeros to find the value of a small result."""
_WHOLE = frozenset({torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
# Their result's shape depends on values, and `meta` either refuses or makes up an unbacked size.
_VALUE_SHAPES = frozenset(
    {"aten::unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::bincount"}
)

# What these give in whole numbers nobody reads: statuses, seeds, lengths.
_WITHOUT_VALUES = ("linalg", "scaled_dot_product", "thnn")


def keeps_values(dtype: torch.dtype, numel: int, *, is_known: bool = False) -> bool:
    """Tell whether a tensor of that kind keeps its values under `--inner meta`.

    `is_known`: what it holds comes from the host, or was made of nothing that has no values.
    """
    if is_known and numel == 1:
        return True
    return dtype in _WHOLE and numel <= (_MAX_BYTES_KEPT if dtype is torch.uint8 else MAX_KEPT)


def settle(value: Any, *, is_known: bool = False) -> Any:
    """Give a result computed on the CPU the place it has under `--inner meta`."""
    if isinstance(value, Tensor):
        stays = value.is_meta or keeps_values(value.dtype, value.numel(), is_known=is_known)
        return value if stays else _blank(value)
    if isinstance(value, (list, tuple)):
        return type(value)(settle(item, is_known=is_known) for item in value)
    return value


def _blank(value: Tensor) -> Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def runner(device: Device, op: Op) -> Callable[..., Any]:
    """Give what runs the overload on inner tensors: itself, or by the rules above."""
    return _MetaRunner(device, op).run if device.is_meta else direct(op)


def remembering(device: Device, op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function that computes the overload on inner tensors, without the work where there are no values."""
    if not device.is_meta:
        return function
    shapes = Shapes(op)

    def run(*args: Any, **kwargs: Any) -> Any:
        key = shapes.key(args, kwargs)
        if key is not None and key in shapes.known:
            return shapes.recall(key, args)
        result = function(*args, **kwargs)
        if key is not None:
            shapes.learn(key, result, args)
        return result

    return run


class _MetaRunner:
    """Runs one overload where some inputs have values and others have none."""

    def __init__(self, device: Device, op: Op) -> None:
        self.device = device
        self.op = op
        self.name = op.name().removeprefix("aten::")
        # Zeros are no matrix that can be factorized: a status that is asked for is "no error".
        self.is_factorization = self.name.lstrip("_").startswith("linalg")
        self.makes_values = not self.name.lstrip("_").startswith(_WITHOUT_VALUES)
        self.needs_values = op._schema.name in _VALUE_SHAPES
        arguments = op._schema.arguments
        self.written = [i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
        self.written_names = {arguments[i].name for i in self.written}
        self.run = remembering(device, op, self._run)
        """Runs it; results that keep values are on the CPU, all others on `meta`."""

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        places = set(_places((*args, *kwargs.values())))
        if not places:
            return self._make(args, kwargs)
        if places == {"cpu"}:
            return settle(self.op(*args, **{k: _to_cpu(v) for k, v in kwargs.items()}), is_known=True)
        if self.needs_values or (self._writes_kept(args, kwargs) and not self.is_factorization):
            return settle(self._on_zeros(args, kwargs))
        try:
            result = self._on_meta(args, kwargs)
        except NotImplementedError:
            self.device.tell_once(
                "value-read",
                f"`{self.name}` depends on values that `--inner meta` does not have; it was run on zeros",
                op=self.name,
            )
            return settle(self._on_zeros(args, kwargs))
        if not self.written and _has_kept(result):
            return self._with_values(result, args, kwargs)
        return result

    def _make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a factory: on `meta`, and again on the CPU where its values are kept."""
        result = self.op(*args, **kwargs)
        if not _has_kept(result, is_known=True):
            return settle(result, is_known=True)
        return self.op(*args, **{k: _to_cpu(v) for k, v in kwargs.items()})

    def _on_meta(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it without values; a number that it writes into is known no more."""
        result = self.op(*[_to_meta(value) for value in args], **{k: _to_meta(v) for k, v in kwargs.items()})
        for target in self._targets(args, kwargs):
            if not target.is_meta:
                _lose_values(target)
        return result

    def _writes_kept(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return any(each.dtype in _WHOLE and not each.is_meta for each in self._targets(args, kwargs))

    def _targets(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        if not self.written:
            return []
        targets = [args[i] for i in self.written if i < len(args)]
        return _tensors([*targets, *[value for name, value in kwargs.items() if name in self.written_names]])

    def _on_zeros(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        there = [_zeros(value) for value in args]
        named = {name: _zeros(value) for name, value in kwargs.items()}
        result = self.op(*there, **named)
        pairs = [(args[i], there[i]) for i in self.written if i < len(args)]
        pairs += [(kwargs[name], named[name]) for name in self.written_names if name in kwargs]
        for given, used in pairs:
            # The stand-in of an `out` was resized; what it stands for has to follow.
            if isinstance(given, Tensor) and given.is_meta and given.shape != used.shape:
                given.resize_(used.shape)
        return result

    def _with_values(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Find the values that a small result of whole numbers has if all that is unknown is zero."""
        if self.name == "topk":
            return result[0], _spread(result[1], args, kwargs)
        if not self.makes_values or _num_unknown((*args, *kwargs.values())) > _MAX_ZEROS:
            return zero_kept(result)
        try:
            return _filled(result, self._on_zeros(args, kwargs))
        except RuntimeError:
            return zero_kept(result)


def _spread(chosen: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Give the places that `topk` chooses: the first row the first ones, the next row those that follow, and so on."""
    if not chosen.dim():
        return torch.zeros((), dtype=chosen.dtype)
    dim = kwargs.get("dim", args[2] if len(args) > 2 else -1)
    places = torch.arange(chosen.numel()) % args[0].shape[dim]
    rows = chosen.movedim(dim, -1)
    return places.reshape(rows.shape).movedim(-1, dim).contiguous().to(chosen.dtype)


def _lose_values(inner: Tensor) -> None:
    known = inner.untyped_storage().outer  # type: ignore[attr-defined]
    storage = known() if known is not None else None
    if storage is not None:
        storage.held.lose_values()


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _places(values: Any) -> list[str]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            if value.dim() or value.is_meta or value.dtype in _WHOLE:
                found.append("meta" if value.is_meta else "cpu")
        elif isinstance(value, (list, tuple)):
            found += _places(value)
    return found


def _num_unknown(values: Any) -> int:
    return sum(each.numel() for each in _tensors(values) if each.is_meta)


def _has_kept(result: Any, *, is_known: bool = False) -> bool:
    return any(
        each.is_meta and keeps_values(each.dtype, each.numel(), is_known=is_known) for each in _tensors([result])
    )


def _filled(result: Any, there: Any) -> Any:
    """Give a result without values, its small whole numbers as they are `there`, laid out as they should be."""
    if isinstance(result, Tensor):
        if not _has_kept(result):
            return result
        known = torch.empty_strided(result.shape, result.stride(), dtype=result.dtype)
        return known.copy_(there)
    if not isinstance(result, (list, tuple)):
        return result
    return type(result)(_filled(item, known) for item, known in zip(result, there, strict=True))


def zero_kept(result: Any) -> Any:
    """Give zeros for the small whole numbers in a result that has no values."""
    if isinstance(result, Tensor):
        return torch.zeros(result.shape, dtype=result.dtype) if _has_kept(result) else result
    return type(result)(zero_kept(item) for item in result) if isinstance(result, (list, tuple)) else result


def _to_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value if value.is_meta else value.to("meta")
    return [_to_meta(item) for item in value] if isinstance(value, (list, tuple)) else value


def _to_cpu(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "meta" else value


def _zeros(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.zeros(value.shape, dtype=value.dtype) if value.is_meta else value
    if isinstance(value, (list, tuple)):
        return [_zeros(item) for item in value]
    return _to_cpu(value)
