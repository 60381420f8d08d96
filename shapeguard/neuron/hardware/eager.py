"""Eager operators on hardware: one line for each key that TorchNeuron had not seen in this process.

Async mode (M): every kernel goes through `_C._submit_xla_task_to_pipeline`, with TorchNeuron's key. Sync mode (M): the
cache lives in Python and only tells of misses. With neither, the calls that the program makes are counted by the
compile model, as in a simulation, and marked as a guess.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from shapeguard.core.events import Outcome, Sink
from shapeguard.core.forbid import GATE, RAISE
from shapeguard.neuron.hardware import names
from shapeguard.neuron.hardware.calls import Calls, Running
from shapeguard.neuron.hardware.names import Neuron
from shapeguard.neuron.hardware.outcomes import Outcomes
from shapeguard.neuron.hardware.predict import as_submitted, matching, out_form, predict
from shapeguard.neuron.model import eager
from shapeguard.neuron.model.eager import Call, is_folded
from shapeguard.neuron.model.policy import KEYED, Policy, from_environment
from shapeguard.neuron.model.tables import REGISTERED
from shapeguard.neuron.sim.specs import layout_of

_KEY_PLACE = 5
"""Place of the key among the arguments of the submit call (M)."""
_COPIES = ("copy_", "_to_copy", "contiguous", "clone")
_CHANGES = ("os.putenv", "os.unsetenv")


class EagerWatch:
    """Writes down the eager operators that compile."""

    def __init__(self, sink: Sink, neuron: Neuron, calls: Calls, policy: Policy, outcomes: Outcomes) -> None:
        self._sink = sink
        self._neuron = neuron
        self._calls = calls
        self._outcomes = outcomes
        self.policy = policy
        self.source = ""
        self.num_submits = 0
        self.num_misses = 0
        self._seen: set[Any] = set()
        self._emitted: set[Any] = set()
        self._keys: set[str] = set()

    def install(self) -> None:
        """Wrap what there is to wrap; the best source that is there is used."""
        has_submit = self._neuron.wrap(names.SUBMIT, self._around_submit)
        has_miss = self._neuron.wrap(names.MISS, self._around_miss)
        self.source = names.MISS if self.policy.is_sync and has_miss else names.SUBMIT if has_submit else ""
        if self.policy.is_sync and not has_miss:
            self.source = ""
        self._calls.on_missed = self._describe_missed
        if not self.source:
            self._calls.on_call = self._predicted
        self._follow_flags()

    def _around_submit(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def submit(op_name: str, inputs: Any, outputs: Any, *rest: Any, **named: Any) -> Any:
            self.num_submits += 1
            new = self._note(op_name, inputs, outputs, key=_key((op_name, inputs, outputs, *rest), named))
            result = plain(op_name, inputs, outputs, *rest, **named)
            if new:
                self._check_forbidden(new)
            return result

        return submit

    def _around_miss(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def miss(*args: Any, **named: Any) -> Any:
            result = plain(*args, **named)
            self.num_misses += 1
            if not self.num_submits:
                self._missed([value for value in (*args, *named.values()) if isinstance(value, str)])
            return result

        return miss

    def _note(self, op_name: str, inputs: Any, outputs: Any, *, key: str) -> Call | None:
        """Write a kernel down where its key and the layouts that are folded into it are new; gives it then."""
        tensors = [each for each in _flat(inputs) if isinstance(each, torch.Tensor)]
        quick = (key, *[None if t.is_contiguous() else (t.shape, t.stride(), t.storage_offset()) for t in tensors])
        if quick in self._seen:
            return None
        self._seen.add(quick)
        self.refresh()
        layouts = [layout_of(each) for each in tensors]
        folded = tuple(str(each) if is_folded(each, self.policy) else "" for each in layouts)
        whole = (key, folded if any(folded) else (), self.policy.suffix(self.policy.opt_level_eager))
        if whole in self._emitted:
            return None
        self._emitted.add(whole)
        op, results = _short(op_name), _flat(outputs)
        call = self._described(op, tensors, results)
        is_collective = self._calls.running is None and "::" not in op_name and op not in REGISTERED
        self._emit(call, key, kind="collective" if is_collective else "eager", more=str(whole))
        return call

    def _described(self, op: str, tensors: Sequence[Any], outputs: Sequence[Any]) -> Call:
        running = self._calls.running
        if running is not None:
            # The operator's own kernel comes last, and only then is its result known.
            is_last = op == out_form(running.name)
            found = None if is_last else matching(running.predicted or (), op, tensors)
            if found is None:
                running.predicted = predict(running, op, outputs, self.policy, inputs=tensors)
                found = matching(running.predicted, op, tensors)
            if found is not None:
                return found
        return as_submitted(op, tensors, outputs, running)

    def _missed(self, words: Sequence[str]) -> None:
        """A miss of the cache of sync mode. I: its key is the longest text that it is told with."""
        key = max(words, key=len, default="")
        if not self.policy.is_sync:
            # The release's default, which no variable says: keys have no suffix and no layouts then.
            self.policy = replace(self.policy, is_sync=True, folds_layouts=False)
        if key in self._emitted:
            return
        self._emitted.add(key)
        running = self._calls.running
        named = next((_short(word) for word in words if word.startswith("aten::")), "")
        op = named.partition("(")[0] or (running.name if running is not None else "")
        if running is None:
            self._emit(as_submitted(op, (), (), None), "", kind="eager", more=key)
        else:
            running.missed.append((op, key))

    def _describe_missed(self, running: Running, result: Any) -> None:
        for op, key in running.missed:
            call = self._next_predicted(running, op, result)
            self._emit(call or as_submitted(op, (), (), running), "", kind="eager", more=key)

    def _next_predicted(self, running: Running, op: str, result: Any) -> Call | None:
        """Take the next call that the model expects of this operator and that was not written down."""
        if running.predicted is None or not any(call.op == op for call in running.predicted):
            running.predicted = predict(running, op, _flat(result), self.policy)
        same = [call for call in running.predicted if call.op == op]
        return next((call for call in same if self._digest(call) not in self._keys), None)

    def _predicted(self, running: Running, result: Any) -> None:
        """Count a call by the model alone."""
        op = running.name if running.name in _COPIES else out_form(running.name)
        for call in predict(running, op, _flat(result), self.policy) if op else ():
            # A copy on the device takes the layout in; `contiguous` is a call of its own.
            is_taken_in = call.op == "contiguous" and running.name == "_to_copy" and _is_on_device(result)
            if not is_taken_in and self._digest(call) not in self._keys:
                self._emit(replace(call, certainty="±"), "", kind="eager", more="")

    def _digest(self, call: Call) -> str:
        return hashlib.sha256(eager.key(call, self.policy).encode()).hexdigest()[:32]

    def _emit(self, call: Call, neuron_key: str, *, kind: str, more: str) -> None:
        key, certainty = self._digest(call), eager.certainty(call)
        if key in self._keys:
            # TorchNeuron tells apart what our description does not: the count is TorchNeuron's.
            key, certainty = hashlib.sha256(f"{key}|{more}".encode()).hexdigest()[:32], "±"
        self._keys.add(key)
        number = self._sink.emit(
            {
                "type": "compile",
                "kind": kind,
                "outcome": Outcome.COMPILED,
                "op": call.op,
                "key": key,
                "inputs": [
                    {"path": path, "shape": list(spec.shape), "dtype": spec.dtype, "layout": str(spec.layout or "")}
                    for path, spec in eager.tensors(call)
                ],
                "constants": [{"path": path, "value": value} for path, value in eager.constants(call)],
                "certainty": certainty,
            }
        )
        if neuron_key and number:
            self._outcomes.expect(number, neuron_key, is_graph=False)

    def _check_forbidden(self, call: Call) -> None:
        """Where compiles are forbidden, wait for this one: only its end tells whether it came from disk."""
        if not GATE.mode:
            return
        before = list(self._outcomes)
        self._outcomes.settle()
        if any(each.ended.get("outcome") == Outcome.COMPILED for each in before):
            if GATE.mode == RAISE:
                GATE.refuse(call.op)
            GATE.tell(call.op)

    def _follow_flags(self) -> None:
        """Take every key for new once the program changes the compiler's flags (M: they are read for every kernel)."""
        watched = {os.fsencode(name) for name in KEYED}

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event in _CHANGES and os.fsencode(args[0]) in watched:
                self._seen.clear()
                self._stale = True

        sys.addaudithook(hook)

    _stale = False

    def refresh(self) -> None:
        """Read the flags again where the program changed them."""
        if self._stale:
            self._stale = False
            now = from_environment(os.environ, target=self.policy.target)
            self.policy = replace(
                self.policy,
                compiler_flags=now.compiler_flags,
                opt_level_eager=now.opt_level_eager,
                opt_level_compile=now.opt_level_compile,
                logical_cores=now.logical_cores,
            )


def _short(op_name: str) -> str:
    return str(op_name).removeprefix("aten::").removesuffix(".default")


def _key(args: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Find TorchNeuron's key among the arguments: at its place, else the longest text after the name."""
    key = named.get("cache_key", args[_KEY_PLACE] if len(args) > _KEY_PLACE else None)
    if isinstance(key, str) and key:
        return key
    return max((value for value in args[1:] if isinstance(value, str)), key=len, default=str(args[0]))


def _is_on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "neuron"


def _flat(values: Any) -> list[Any]:
    if isinstance(values, torch.Tensor):
        return [values]
    return [each for value in values for each in _flat(value)] if isinstance(values, (list, tuple)) else []
