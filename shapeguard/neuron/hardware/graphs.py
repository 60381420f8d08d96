"""Regions and graphs on hardware: what Dynamo hands to Neuron's backend, and the graphs after AOTAutograd.

Our own key is made from the same graph as on the simulated device. That something was compiled for Neuron is told by
`_C.compile_graph` (M); where that is missing, by inputs on the device.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import fx

from shapeguard.core.events import Outcome, Sink
from shapeguard.core.forbid import GATE, RAISE
from shapeguard.neuron.hardware import names
from shapeguard.neuron.hardware.names import Neuron
from shapeguard.neuron.hardware.outcomes import Outcomes
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.sim.backend import refused_error
from shapeguard.neuron.sim.dynamo import followed, is_neurons, unwatched, watch_limit
from shapeguard.neuron.sim.fingerprint import digest, text_of
from shapeguard.neuron.sim.graph_facts import graph_facts
from shapeguard.neuron.sim.regions import code_of, describe, dynamo_frame
from shapeguard.neuron.sim.torch_private import without_modes

NAME = "neuron"
Compiler = Callable[..., Any]


class _Region:
    """One hand-over of Dynamo that may be for Neuron."""

    def __init__(self, facts: dict[str, Any], code: Any) -> None:
        self.facts = facts
        self.code = code
        self.number = 0
        """0 until it is known to be for Neuron."""


class GraphWatch:
    """Writes down regions and graphs of one process."""

    def __init__(self, sink: Sink, neuron: Neuron, policy: Callable[[], Policy], outcomes: Outcomes) -> None:
        self._sink = sink
        self._neuron = neuron
        self._policy = policy
        self._outcomes = outcomes
        self._threads = threading.local()
        self._num_regions = 0
        self._known: set[str] = set()
        self.over_limit: set[int] = set()
        """Ids of code objects that Dynamo gave up on; read by the simulated device's own watch of them."""
        self.device = self
        self.sink = sink
        self.has_compile = False
        self.problems: list[str] = []
        self.keep_graph: Callable[[str, str], None] = lambda key, text: None

    def install_early(self) -> None:
        """Wrap torch's own part of compiling, before torch_neuronx takes its functions by name."""
        from torch._dynamo.backends import common
        from torch._functorch import aot_autograd

        wrapped = self._around_aot(aot_autograd.aot_module_simplified)
        aot_autograd.aot_module_simplified = wrapped
        common.aot_module_simplified = wrapped
        self._watch_dynamo()

    def install(self) -> None:
        """Wrap the entry to the compiler, and `torch.compile` for regions that give up."""
        self.has_compile = self._neuron.wrap(names.COMPILE, self._around_compile)
        plain = torch.compile

        @functools.wraps(plain)
        def compile(model: Any = None, **kwargs: Any) -> Any:
            watch_limit(cast(Any, self))
            model = unwatched(model)
            return followed(plain(model, **kwargs), model, cast(Any, self))

        torch.compile = compile

    def _watch_dynamo(self) -> None:
        from torch._dynamo.output_graph import OutputGraph

        plain = OutputGraph.call_user_compiler

        @functools.wraps(plain)
        def call_user_compiler(self: Any, gm: fx.GraphModule, example_inputs: list[Any]) -> Any:
            return watch(self, gm, example_inputs)

        def watch(output: Any, graph: fx.GraphModule, example_inputs: list[Any]) -> Any:
            if not is_neurons(output.compiler_fn, cast(Any, self)):
                return plain(output, graph, example_inputs)
            frame = dynamo_frame()
            region = _Region(describe(graph, frame), code_of(frame))
            before, self._threads.region = self._region, region
            try:
                return plain(output, graph, example_inputs)
            except Exception:
                if not region.number and (_is_on_device(example_inputs) or _has_symbols(graph)):
                    self._begin(region, Outcome.FAILED)
                raise
            finally:
                self._threads.region = before

        OutputGraph.call_user_compiler = call_user_compiler  # type: ignore[method-assign]

    @property
    def _region(self) -> _Region | None:
        return self._threads.__dict__.get("region")

    def _begin(self, region: _Region, outcome: Outcome) -> None:
        """Write a region down, before its graphs, which belong to it."""
        self._num_regions += 1
        region.number = self._num_regions
        event = {"type": "compile", "kind": "region", "region": region.number, "code_object": region.code}
        key = f"region {region.number}" if outcome is Outcome.COMPILED else ""
        if outcome is Outcome.COMPILED:
            self._sink.region_begins(None)
        self._sink.emit({**event, **region.facts, "outcome": outcome, "key": key})

    def _around_aot(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(plain)

        @functools.wraps(plain)
        def aot_module_simplified(*args: Any, **kwargs: Any) -> Any:
            region = self._region
            if region is None:
                return plain(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            forward = given["fw_compiler"]
            for name, kind in (("bw_compiler", "backward"), ("inference_compiler", "inference")):
                given[name] = self._compiler(region, given.get(name) or forward, kind)
            given["fw_compiler"] = self._compiler(region, forward, "forward")
            return plain(**given)

        return aot_module_simplified

    def _compiler(self, region: _Region, plain: Compiler, kind: str) -> Compiler:
        """Put our look at the graph around one of AOTAutograd's compilers."""

        @functools.wraps(plain)
        def compile_graph(graph: fx.GraphModule, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
            pending = self._look(graph, kind)
            # A backward may be compiled later, at its first run: the region is no longer the current one then.
            before, self._threads.region = self._region, region
            outer, self._threads.graph = self._threads.__dict__.get("graph"), pending
            try:
                result = plain(graph, example_inputs, *args, **kwargs)
                if not pending.get("told") and (region.number or _is_on_device(example_inputs)):
                    self._tell(region, pending, key="")
            finally:
                self._threads.region, self._threads.graph = before, outer
            if pending.get("told") and kind != "backward" and callable(result):
                return _announced(result, functools.partial(self._sink.region_begins, kind == "forward"))
            return result

        return compile_graph

    def _look(self, graph: fx.GraphModule, kind: str) -> dict[str, Any]:
        """Describe a graph before the backend's passes change it."""
        with without_modes():
            text = text_of(graph)
            facts = graph_facts(graph, text)
        policy = self._policy()
        key = digest(f"{text}_{policy.suffix(policy.opt_level_compile)}")
        self.keep_graph(key, text)
        return {"event": {"type": "compile", "kind": kind, "key": key, "name": "", **facts}}

    def _around_compile(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def compile_graph(*args: Any, **kwargs: Any) -> Any:
            pending, region = self._threads.__dict__.get("graph"), self._region
            try:
                key = plain(*args, **kwargs)
            except Exception:
                if pending is not None and region is not None and not pending.get("told"):
                    self._tell(region, pending, key="", outcome=Outcome.FAILED)
                raise
            if pending is None or region is None:
                self._lone(str(key or (args[0] if args else "")))
            elif not pending.get("told"):
                self._tell(region, pending, key=str(key or args[0]))
            return key

        return compile_graph

    def _tell(self, region: _Region, pending: dict[str, Any], *, key: str, outcome: Outcome | None = None) -> None:
        pending["told"] = True
        if not region.number:
            self._begin(region, Outcome.COMPILED)
        event = pending["event"]
        known = key or event["key"]
        is_new = known not in self._known
        self._known.add(known)
        ended = outcome or (Outcome.COMPILED if is_new else Outcome.SHARED)
        number = self._sink.emit({**event, "region": region.number, "outcome": ended})
        if number and outcome is None:
            expected = self._outcomes.expect(number, key, is_graph=True)
            if not is_new:
                expected.ended["outcome"] = Outcome.SHARED
            elif GATE.mode:
                self._check_forbidden(f"{event['kind']} graph", expected)

    def _lone(self, key: str) -> None:
        """A graph was handed to the compiler that nothing of torch was seen of: all that is known is its key."""
        if key in self._known:
            return
        self._known.add(key)
        event = {"type": "compile", "kind": "inference", "outcome": Outcome.COMPILED, "key": digest(key)}
        number = self._sink.emit({**event, "region": 0, "name": "", "inputs": [], "constants": [], "nodes": 0})
        if number:
            self._outcomes.expect(number, key, is_graph=True)

    def _check_forbidden(self, what: str, expected: Any) -> None:
        self._outcomes.settle()
        if expected.ended.get("outcome") == Outcome.COMPILED:
            if GATE.mode == RAISE:
                GATE.refuse(what, refused_error())
            GATE.tell(what)


def _announced(run: Callable[..., Any], begins: Callable[[], None]) -> Callable[..., Any]:
    """Give a compiled graph that says when it runs; what torch reads off the function stays on it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        begins()
        return run(*args, **kwargs)

    call.__dict__.update(getattr(run, "__dict__", {}))
    return call


def _is_on_device(values: Any) -> bool:
    return any(isinstance(value, torch.Tensor) and value.device.type == NAME for value in values or ())


def _has_symbols(graph: fx.GraphModule) -> bool:
    values = (node.meta.get("example_value") for node in graph.graph.nodes if node.op == "placeholder")
    return any(isinstance(value, torch.SymInt) for value in values)
