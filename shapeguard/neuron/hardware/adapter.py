"""Puts the parts of the adapter together: what is there, what it rests on, and what that leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shapeguard.core.events import Sink
from shapeguard.neuron.hardware import names
from shapeguard.neuron.hardware.calls import Calls
from shapeguard.neuron.hardware.eager import EagerWatch
from shapeguard.neuron.hardware.graphs import GraphWatch
from shapeguard.neuron.hardware.names import Neuron
from shapeguard.neuron.hardware.outcomes import Outcomes
from shapeguard.neuron.model.policy import Policy


class Adapter:
    """Follows the compiles of the torch_neuronx that this process has."""

    def __init__(self, sink: Sink, policy: Policy, *, site: Callable[[], Any]) -> None:
        self.neuron = Neuron()
        self._sink = sink
        self.calls = Calls(site)
        self.outcomes = Outcomes(sink, self.neuron)
        self.eager = EagerWatch(sink, self.neuron, self.calls, policy, self.outcomes)
        self.graphs = GraphWatch(sink, self.neuron, self._policy, self.outcomes)
        self.is_attached = False

    def _policy(self) -> Policy:
        self.eager.refresh()
        return self.eager.policy

    def before_import(self) -> None:
        """Wrap what torch_neuronx will use of torch."""
        self.calls.watch()
        # A program may import torch_neuronx before torch: then it is not whole when torch loads us.
        self.calls.on_begin = self.attach
        self.graphs.install_early()

    def attach(self) -> bool:
        """Wrap what torch_neuronx has; False where it is not imported whole yet."""
        if self.is_attached:
            return True
        if self.neuron.module is None or self.neuron.module.__dict__.get("_C") is None:
            return False
        self.is_attached = True
        self.calls.on_begin = None
        self.eager.install()
        self.graphs.install()
        self._sink.emit({"type": "device", "device": {**self.neuron.facts(), "evidence": self.evidence()}})
        return True

    def evidence(self) -> dict[str, str]:
        """Say what each kind of fact rests on."""
        present = self.neuron.present()
        return {
            "eager": _eager(self.eager.source),
            "graphs": "_C.compile_graph" if self.graphs.has_compile else "graphs of torch with inputs on the device",
            "outcomes": _outcomes(present),
            "seconds": _either(present, (names.ENTRIES, names.METRICS), "none"),
            "names": _either(present, (names.METRICS,), "none"),
            "host_operators": _either(present, (names.FALLBACKS,), "none"),
            "missing": " ".join(sorted(set(names.NAMES) - present - self._not_needed())),
        }

    def _not_needed(self) -> set[str]:
        """Name what the other mode of launching has."""
        return {names.MISS} if not self.eager.policy.is_sync else {names.SUBMIT}

    def step(self) -> None:
        """Between two steps everything of the last one was needed already: waiting for it costs nothing."""
        if self.attach():
            self.eager.refresh()
            self.outcomes.settle()

    def end(self) -> None:
        """Write down what is known at the end only."""
        if not self.attach():
            self._sink.emit(_problem("no-neuron", "torch_neuronx was never imported: nothing of Neuron was seen"))
            return
        self.outcomes.settle(is_end=True)
        for op in self.neuron.call(names.FALLBACKS) or ():
            name = str(op).removeprefix("aten::").removesuffix(".default")
            # TorchNeuron keeps names only: how often and how much is not known.
            self._sink.emit({"type": "fallback", "op": name, "calls": 0, "bytes": 0})
        for problem in self._problems():
            self._sink.emit(problem)
        self._sink.emit({"type": "device", "device": {"mode": self._mode(), "evidence": self.evidence()}})

    def _mode(self) -> str:
        if self.eager.num_submits:
            return "async"
        return "sync" if self.eager.num_misses or self.eager.policy.is_sync else "async"

    def _problems(self) -> list[dict[str, Any]]:
        found = []
        if not self.eager.source:
            found.append(_problem("evidence", _NO_EAGER))
        elif not (self.eager.num_submits or self.eager.num_misses) and self.neuron.call(names.EXECUTED):
            number = len(self.neuron.call(names.EXECUTED))
            found.append(_problem("evidence", f"{number} eager operators ran, none of them was seen: not counted"))
        if self.outcomes.num_unsettled:
            found.append(_problem("evidence", _UNSETTLED.format(self.outcomes.num_unsettled)))
        return found


_NO_EAGER = (
    "torch_neuronx tells of no eager operator here: they are counted from the calls that the program made, as the "
    "simulation would (±)"
)
_UNSETTLED = "of {} compiles it is not known whether they came from disk: they count as compiled"


def _eager(source: str) -> str:
    if source == names.SUBMIT:
        return f"{source}, described by the ATen call that ran"
    return f"{source}, described by the compile model" if source else "the compile model, from the calls made (±)"


def _outcomes(present: frozenset[str]) -> str:
    return _either(present, (names.ENTRIES, names.METRICS, names.COUNTER, names.STATS), "none: all count as compiled")


def _either(present: frozenset[str], wanted: tuple[str, ...], otherwise: str) -> str:
    return next((name for name in wanted if name in present), otherwise)


def _problem(code: str, message: str) -> dict[str, Any]:
    return {"type": "problem", "code": code, "message": message}
