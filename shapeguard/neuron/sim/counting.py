"""Counts the eager operators that the simulated device runs, as the compile model says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from shapeguard.core.cost import EAGER_S
from shapeguard.core.events import Outcome, Sink
from shapeguard.core.forbid import GATE
from shapeguard.neuron.model import copies, eager
from shapeguard.neuron.model.eager import Argument, Call, Spec, TypeOf, Value
from shapeguard.neuron.model.extras import parts
from shapeguard.neuron.model.layouts import Kind
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.model.tables import BY_VALUE, NEVER_CUT_SHORT, REDUCTIONS
from shapeguard.neuron.sim.metrics import Counters
from shapeguard.neuron.sim.neff_cache import Entry, Forbidden, NeffCache, Tally
from shapeguard.neuron.sim.persistent import store_for
from shapeguard.neuron.sim.specs import dtype_name, size_bytes, spec_of

Tensor = torch.Tensor

# Facts 1.1: dropped from the keywords of every key.
NOT_IN_KEY = frozenset({"device", "pin_memory", "memory_format", "layout", "requires_grad", "non_blocking"})


class Plan:
    """What has to be known of one overload to key its calls quickly; made once."""

    __slots__ = ("by_name", "by_value", "name", "names", "seen")

    def __init__(self, op: torch._ops.OpOverload, name: str) -> None:
        self.name = name
        values = BY_VALUE.get(name, frozenset())
        self.names = tuple(argument.name for argument in op._schema.arguments)
        self.by_value = tuple(argument in values for argument in self.names)
        self.by_name = values
        self.seen: dict[Any, Tally] = {}
        """Quick keys of the calls that have been counted; those of one plan are made in one way."""


class Counter:
    """The process's cache of eager graphs: a key that is not in it is one compile."""

    def __init__(self, sink: Sink, policy: Policy) -> None:
        self.sink = sink
        self.policy = policy
        self.counters = Counters(is_enabled=policy.has_metrics)
        self.counters.settle = self.settle
        store = store_for(policy)
        make = partial(NeffCache, store, compiler=policy.compiler, speed=policy.speed)
        self.neffs = make(self.counters, max_entries=policy.max_entries)
        """What compiled graphs use, and eager ones in async mode."""
        self.eager_neffs = self.neffs
        if policy.is_sync:
            # A cache on the Python side, which the counters know nothing of.
            self.eager_neffs = make(Counters(is_enabled=False), digits=64)
        self.executed: set[str] = set()
        self.fallen_back: set[str] = set()
        """Operators that no kernel of the device took."""
        self.fallbacks: dict[str, list[int]] = {}
        """Operator → calls, bytes."""
        self._copies: dict[Any, _Copied] = {}
        self._tallies: list[tuple[dict[Any, Any], Any, Tally]] = []
        self._forgets = bool(policy.max_entries) or (policy.is_sync and not policy.has_sync_memory)
        self._is_paused = False
        self.stale = False
        """Whether the compiler's flags changed since they were read."""
        self.refresh: Callable[[], None] = lambda: None
        """Reads them again."""

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
        tally = plan.seen.get(quick)
        if tally is None:
            self.first(plan, quick, args, kwargs, out)
        else:
            tally.times += 1

    def first(
        self,
        plan: Plan,
        quick: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Tensor | None = None,
        result: Any = None,
    ) -> None:
        """Note a call whose quick key the plan has not seen; `result` is what it gave, on either side."""
        if self._is_paused:
            return
        call = describe(plan, args, kwargs, out)
        if plan.name not in NEVER_CUT_SHORT and is_cut_short(args, result):
            call_for_result = in_place_of_empty(plan.name, result)
            entries = [self._compile(call_for_result)] if call_for_result else []
        else:
            entries = self.note(call)
        # What goes through the host is counted at every call.
        if not eager.bounced(call):
            self._remember(plan.seen, quick, entries)

    def note(self, call: Call) -> list[Entry]:
        """Note a call that the model knows: what runs before it, itself, what runs beside it."""
        if self._is_paused:
            return []
        for spec in eager.bounced(call):
            self.bounce("contiguous", spec.storage_bytes + size_bytes(spec))
        return [self._compile(each) for each in (*eager.materialised(call, self.policy), *parts(call, self.policy))]

    def copied(self, source: Tensor, dtype: torch.dtype, into: Tensor | None = None) -> None:
        """Note a copy or cast on the device: into a tensor that is there, or into a new one."""
        where = None if into is None else (_quick_value(into, False), into.data_ptr() == source.data_ptr())
        quick = (_quick_value(source, False), dtype, where)
        known = self._copies.get(quick)
        if known is None:
            known = self._first_copy(quick, source, dtype, into)
        else:
            known.tally.times += 1
        for op, size in known.bounces:
            self.bounce(op, size)

    def _first_copy(self, quick: Any, source: Tensor, dtype: torch.dtype, into: Tensor | None) -> _Copied:
        spec, name = spec_of(source), dtype_name(dtype)
        copy = copies.cast(spec, name) if into is None else copies.into(spec, spec_of(into))
        if into is not None and into.data_ptr() == source.data_ptr():
            copy = copies.onto_itself(copy)
        entries: list[Entry] = []
        bounces: list[tuple[str, int]] = []
        if copy.is_bounced:
            op = "copy_" if source.dtype is dtype else "_to_copy"
            bounces.append((op, source.numel() * (source.itemsize + dtype.itemsize)))
        if not self._is_paused:
            for call in copy.calls:
                bounces += [("contiguous", each.storage_bytes + size_bytes(each)) for each in eager.bounced(call)]
                calls = (*eager.materialised(call, self.policy), call)
                entries += [self._compile(each) for each in calls]
        known = _Copied(Tally(entries), tuple(bounces))
        if not (self._is_paused or self._forgets):
            self._copies[quick] = known
            self._tallies.append((self._copies, quick, known.tally))
        return known

    def contiguous(self, spec: Spec) -> None:
        """Note an explicit `.contiguous()`, or a copy to the host, which needs one first."""
        if self._is_paused or spec.layout is None:
            return
        if spec.layout.kind is not Kind.STRIDED:
            self._compile(eager.contiguous(spec))
        else:
            self.bounce("contiguous", spec.storage_bytes + size_bytes(spec))

    def flush(self) -> None:
        """Write down the totals of the operators that ran on the host."""
        for op, (calls, size) in self.fallbacks.items():
            self.sink.emit({"type": "fallback", "op": op, "calls": calls, "bytes": size})

    def settle(self) -> None:
        """Bring the uses of known calls into the caches."""
        tallies = [tally for _, _, tally in self._tallies]
        self.eager_neffs.settle(tallies)

    def forget(self) -> None:
        """Have every call looked at again: a key may have changed, or the caches been cleared."""
        self.settle()
        for seen, quick, _ in self._tallies:
            seen.pop(quick, None)
        self._tallies.clear()

    def clear_tracking(self) -> None:
        """Forget which operators ran, here and on the host; counts stay."""
        self.forget()
        self.executed.clear()
        self.fallen_back.clear()

    def refresh_if_stale(self) -> None:
        """Read the compiler's flags again if the program changed them."""
        if self.stale:
            self.stale = False
            self.refresh()

    def _remember(self, seen: dict[Any, Tally], quick: Any, entries: list[Entry]) -> None:
        if not self._forgets:
            tally = seen[quick] = Tally(entries)
            self._tallies.append((seen, quick, tally))

    def _compile(self, call: Call, kind: str = "eager") -> Entry:
        self.refresh_if_stale()
        self.executed.add(call.op)
        text = eager.key(call, self.policy)
        if kind == "eager" and not self.policy.has_sync_memory and self.policy.is_sync:
            self.eager_neffs.clear(disk=False)
        try:
            entry, outcome = self.eager_neffs.request(text, text, EAGER_S)
        except Forbidden:
            self._emit(call, text, kind=kind, outcome=Outcome.FAILED)
            GATE.refuse(call.op)
        if outcome is not None:
            self._emit(call, text, kind=kind, outcome=outcome, neff=self.policy.cache_dir and entry.persistent_key)
            if outcome is Outcome.COMPILED:
                GATE.tell(call.op)
        return entry

    def _emit(self, call: Call, text: str, *, kind: str, outcome: Outcome, neff: str = "") -> None:
        self.sink.emit(
            {
                "type": "compile",
                "kind": kind,
                "outcome": outcome,
                "op": call.op,
                "key": hashlib.sha256(text.encode()).hexdigest()[:32],
                "inputs": [
                    {"path": path, "shape": list(spec.shape), "dtype": spec.dtype, "layout": str(spec.layout or "")}
                    for path, spec in eager.tensors(call)
                ],
                "constants": [{"path": path, "value": value} for path, value in eager.constants(call)],
                "certainty": eager.certainty(call),
                **({"neff": neff} if neff else {}),
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
        self._compile(Call(op=op, arguments=tuple(values), certainty=certainty), kind="collective")

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
        if not self._is_paused:
            self.fallen_back.add(op)
            self.bounce(op, size)

    def bounce(self, op: str, size: int) -> None:
        """Note data that went to the host and back for an operator of the device."""
        if self._is_paused:
            return
        row = self.fallbacks.get(op)
        if row is None:
            self.fallbacks[op] = [1, size]
            self.sink.emit({"type": "fallback", "op": op, "calls": 1, "bytes": size})
        else:
            row[0] += 1
            row[1] += size


@dataclass(slots=True)
class _Copied:
    """What one kind of copy runs, at every call."""

    tally: Tally
    bounces: tuple[tuple[str, int], ...]


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(item) for item in value)
    return isinstance(value, Tensor)


def is_cut_short(args: tuple[Any, ...], result: Any) -> bool:
    """Facts 1.3: with an empty tensor as a direct argument, or only empty results, the kernel itself does not run."""
    if any(isinstance(value, Tensor) and value.numel() == 0 for value in args):
        return True
    found = _tensors(result)
    return bool(found) and all(each.numel() == 0 for each in found)


def in_place_of_empty(name: str, result: Any) -> Call | None:
    """Give what runs where a call with an empty tensor has a result that is not: it is filled, which compiles."""
    found = [each for each in _tensors(result) if each.numel()]
    if not found:
        return None
    size = ("size", Value(str(list(found[0].shape))))
    if name in REDUCTIONS:
        return Call(op="full", arguments=(size, ("fill_value", TypeOf("float"))))
    dtype = ("dtype", Value(str(found[0].dtype)))
    return Call(op="zeros", arguments=(size, dtype, ("device", Value("neuron:0"))))


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for item in value for each in _tensors(item)] if isinstance(value, (list, tuple)) else []


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
