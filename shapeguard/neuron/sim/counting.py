"""Counts the eager operators that the simulated device runs, as the compile model says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from shapeguard.core.events import Outcome, Sink
from shapeguard.neuron.model import eager
from shapeguard.neuron.model.eager import Argument, Call, Spec, TypeOf, Value
from shapeguard.neuron.model.extras import extras
from shapeguard.neuron.model.layouts import Kind, Layout, classify
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.model.tables import BY_VALUE

Tensor = torch.Tensor

# Facts 1.1: dropped from the keywords of every key.
NOT_IN_KEY = frozenset({"device", "pin_memory", "memory_format", "layout", "requires_grad", "non_blocking"})
_DTYPE_NAMES: dict[torch.dtype, str] = {}


def dtype_name(dtype: torch.dtype) -> str:
    """Give "bfloat16" for `torch.bfloat16`."""
    name = _DTYPE_NAMES.get(dtype)
    if name is None:
        name = _DTYPE_NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def layout_of(tensor: Tensor) -> Layout | None:
    """Name the layout of a tensor; None for a contiguous one."""
    if tensor.is_contiguous():
        return None
    return classify(tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


def spec_of(tensor: Tensor) -> Spec:
    """Describe a tensor to the model."""
    return Spec(tuple(tensor.shape), dtype_name(tensor.dtype), layout_of(tensor))


class Plan:
    """What has to be known of one overload to key its calls quickly; made once."""

    __slots__ = ("by_name", "by_value", "name", "names", "seen")

    def __init__(self, op: torch._ops.OpOverload, name: str) -> None:
        self.name = name
        values = BY_VALUE.get(name, frozenset())
        self.names = tuple(argument.name for argument in op._schema.arguments)
        self.by_value = tuple(argument in values for argument in self.names)
        self.by_name = values
        self.seen: set[Any] = set()
        """Quick keys of the calls that have been counted; those of one plan are made in one way."""


class Counter:
    """The process's in-memory cache of eager graphs: a key that is not in it is one compile."""

    def __init__(self, sink: Sink, policy: Policy) -> None:
        self.sink = sink
        self.policy = policy
        self.keys: dict[str, int] = {}
        """Key → how often it was used after its compile (only counted for calls not seen by the quick check)."""
        self.executed: set[str] = set()
        self.fallbacks: dict[str, list[int]] = {}
        """Operator → calls, bytes."""
        self._is_paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing: what runs here would not run on Neuron."""
        before, self._is_paused = self._is_paused, True
        try:
            yield
        finally:
            self._is_paused = before

    def eager(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None = None) -> None:
        """Note one call of a registered operator."""
        quick = _quick(plan, args, kwargs, out)
        if quick not in plan.seen:
            self.first(plan, quick, args, kwargs, out)

    def first(
        self, plan: Plan, quick: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None = None
    ) -> None:
        """Note a call whose quick key the plan has not seen."""
        if self._is_paused:
            return
        plan.seen.add(quick)
        if not _is_empty(args):
            self.note(describe(plan, args, kwargs, out))

    def note(self, call: Call) -> None:
        """Note a call that the model knows: what runs before it, itself, what runs beside it."""
        if self._is_paused:
            return
        for _, spec in eager.tensors(call):
            if spec.layout is not None and spec.layout.kind is Kind.STRIDED:
                self.fallback("contiguous", 2 * _size_bytes(spec))
        for each in (*eager.materialised(call, self.policy), *extras(call, self.policy), call):
            self._compile(each)

    def copy(self, op: str, source: Spec, dtype: str, *, certainty: str = "") -> None:
        """Note a copy or cast on the device, keyed by what it makes of what."""
        self.note(Call(op=op, arguments=(("self", source), ("dtype", Value(dtype))), certainty=certainty))

    def contiguous(self, spec: Spec) -> None:
        """Note an explicit `.contiguous()`."""
        if self._is_paused:
            return
        if spec.layout is not None and spec.layout.kind is not Kind.STRIDED:
            self._compile(eager.contiguous(spec))
        else:
            self.fallback("contiguous", 2 * _size_bytes(spec))

    def expansion(self, source: Spec, shape: tuple[int, ...]) -> None:
        """Note a copy into a larger tensor: the source is expanded and made contiguous first."""
        self._compile(eager.contiguous(Spec(shape, source.dtype, Layout(Kind.EXPANDED, source.shape))))

    def flush(self) -> None:
        """Write down the totals of the operators that ran on the host."""
        for op, (calls, size) in self.fallbacks.items():
            self.sink.emit({"type": "fallback", "op": op, "calls": calls, "bytes": size})

    def _compile(self, call: Call) -> None:
        self.executed.add(call.op)
        text = eager.key(call, self.policy)
        if text in self.keys:
            self.keys[text] += 1
            return
        self.keys[text] = 0
        self._emit(call, text, kind="eager")

    def _emit(self, call: Call, text: str, *, kind: str) -> None:
        self.sink.emit(
            {
                "type": "compile",
                "kind": kind,
                "outcome": Outcome.COMPILED,
                "op": call.op,
                "key": hashlib.sha256(text.encode()).hexdigest()[:32],
                "inputs": [
                    {"path": path, "shape": list(spec.shape), "dtype": spec.dtype, "layout": str(spec.layout or "")}
                    for path, spec in eager.tensors(call)
                ],
                "constants": [{"path": path, "value": value} for path, value in eager.constants(call)],
                "certainty": call.certainty,
            }
        )

    def collective(
        self, op: str, args: tuple[Any, ...], *, groups: str = "", reduction: str = "", certainty: str = ""
    ) -> None:
        """Note an eager collective: a graph for each operator, shapes, dtypes, replica groups, reduction (facts 1.6).

        An input that isn't contiguous is made so by a kernel of its own (facts 1.2).
        """
        if self._is_paused:
            return
        values: list[tuple[str, Argument]] = []
        for index, value in enumerate(args):
            if _has_tensor(value):
                values.append((f"{index}", self._laid_out(_argument(value, False))))
        if groups:
            values.append(("replica_groups", Value(groups)))
        if reduction:
            values.append(("reduce_op", Value(reduction)))
        call = Call(op=op, arguments=tuple(values), certainty=certainty)
        text = eager.key(call, self.policy)
        if text not in self.keys:
            self.keys[text] = 0
            self._emit(call, text, kind="collective")

    def _laid_out(self, argument: Argument) -> Argument:
        """Give an argument with every tensor contiguous, and note what makes it so."""
        if isinstance(argument, tuple):
            return tuple(self._laid_out(item) for item in argument)
        if isinstance(argument, Spec) and argument.layout is not None:
            self.contiguous(argument)
            return Spec(argument.shape, argument.dtype)
        return argument

    def fallback(self, op: str, size: int) -> None:
        """Note an operator that ran on the host: `size` bytes went there and back."""
        if self._is_paused:
            return
        row = self.fallbacks.get(op)
        if row is None:
            self.fallbacks[op] = [1, size]
            self.sink.emit({"type": "fallback", "op": op, "calls": 1, "bytes": size})
        else:
            row[0] += 1
            row[1] += size


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(item) for item in value)
    return isinstance(value, Tensor)


def _size_bytes(spec: Spec) -> int:
    count = 1
    for length in spec.shape:
        count *= length
    return count * int(getattr(torch, spec.dtype).itemsize)


def _is_empty(args: tuple[Any, ...]) -> bool:
    """Facts 1.3: a call with an empty tensor as a direct argument is cut short and compiles nothing."""
    return any(isinstance(value, Tensor) and value.numel() == 0 for value in args)


def _quick(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None) -> Any:
    """Give a hashable that is equal only for calls with equal keys; no strings are built here."""
    parts: list[Any] = []
    for value, by_value in zip(args, plan.by_value, strict=False):
        parts.append(_quick_value(value, by_value))
    for name, value in kwargs.items():
        if name not in NOT_IN_KEY or name in plan.by_name:
            parts.append((name, _quick_value(value, name in plan.by_name)))
    if out is not None:
        parts.append((out.shape, out.dtype))
    return tuple(parts)


def _quick_value(value: Any, by_value: bool) -> Any:
    if isinstance(value, Tensor):
        if value.is_contiguous():
            return (value.shape, value.dtype)
        return (value.shape, value.dtype, value.stride(), value.storage_offset())
    if isinstance(value, (list, tuple)):
        return tuple([_quick_value(item, by_value) for item in value])
    # `str` as in the key: 1 and 1.0 and True differ there, but are equal as values.
    return str(value) if by_value else type(value)


def describe(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None) -> Call:
    """Give the call as the model sees it."""
    arguments: list[tuple[str, Argument]] = []
    for name, value, by_value in zip(plan.names, args, plan.by_value, strict=False):
        arguments.append((name, _argument(value, by_value)))
    for name, value in kwargs.items():
        if name not in NOT_IN_KEY or name in plan.by_name:
            arguments.append((name, _argument(value, name in plan.by_name)))
    if out is not None:
        arguments.append(("out", Spec(tuple(out.shape), dtype_name(out.dtype))))
    return Call(op=plan.name, arguments=tuple(arguments))


def _argument(value: Any, by_value: bool) -> Argument:
    if isinstance(value, Tensor):
        return spec_of(value)
    if by_value:
        return Value(str(value))
    if isinstance(value, (list, tuple)):
        return tuple(_argument(item, by_value) for item in value)
    return TypeOf(type(value).__name__)
