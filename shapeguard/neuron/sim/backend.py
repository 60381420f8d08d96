"""`torch.compile(backend="neuron")`: each graph after AOTAutograd has a key and runs as one unit (facts, section 2)."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from shapeguard.core.cost import compile_s
from shapeguard.core.events import Outcome
from shapeguard.core.forbid import GATE, CompileForbiddenError
from shapeguard.neuron.sim.device import NAME, Device
from shapeguard.neuron.sim.execute import executable
from shapeguard.neuron.sim.fingerprint import digest, text_of
from shapeguard.neuron.sim.graph_facts import graph_facts, num_collectives
from shapeguard.neuron.sim.metrics import GraphMetrics
from shapeguard.neuron.sim.neff_cache import Entry, Forbidden
from shapeguard.neuron.sim.regions import code_of, describe, dynamo_frame
from shapeguard.neuron.sim.symbols import refusal, symbolic_sizes
from shapeguard.neuron.sim.torch_private import without_modes

_log = logging.getLogger(__name__)

_STRIDED = (
    "a compiled region got inputs that are not contiguous: {}. TorchNeuron's source of April 2026 refuses such inputs; "
    "call .contiguous() on them before"
)


class Backend:
    """Compiles the regions of one process."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.num_regions = 0
        self.metrics: list[GraphMetrics] = []
        """One record a graph, for `get_dynamo_metrics()`."""
        self.over_limit: set[int] = set()
        """Ids of code objects that Dynamo gave up on."""
        self.all_metrics: list[GraphMetrics] = []
        """The same, which no reset clears: for the table at the end of the process."""
        self.sides: dict[str, tuple[Entry, set[bool]]] = {}
        """Key → its NEFF, and whether the inputs of the regions that have it lay on the host."""

    def __call__(self, graph: fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        """Compile one region; the signature is Dynamo's."""
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import default_partition

        options = kwargs.get("options") or {}
        if kwargs.get("mode") not in (None, "default"):
            _log.warning("backend neuron ignores mode=%r", kwargs["mode"])
        self.num_regions += 1
        region = _Region(self, self.num_regions, str(options.get("model_name") or "model_default"))
        frame = dynamo_frame()
        facts = describe(graph, frame)
        region.look_at(facts["inputs"])
        code = code_of(frame)
        refused = symbolic_sizes(graph, frame)
        event = {"type": "compile", "kind": "region", "region": region.number, "code_object": code, **facts}
        if refused:
            self.device.sink.emit({**event, "outcome": Outcome.FAILED, "key": ""})
            may_fall_back = options.get("fallback_execution", self.device.policy.falls_back_on_failure)
            if may_fall_back:
                return graph.forward
            raise RuntimeError(refusal(refused))
        # Said before its graphs, which belong to it.
        self.device.sink.region_begins(None)
        self.device.sink.emit({**event, "outcome": Outcome.COMPILED, "key": f"region {region.number}"})
        compiler = aot_autograd(
            fw_compiler=region.compiler("forward"),
            bw_compiler=region.compiler("backward"),
            inference_compiler=region.compiler("inference"),
            partition_fn=default_partition,
            keep_inference_input_mutations=True,
        )
        return compiler(graph, example_inputs)


class _Region:
    """One hand-over of Dynamo, whose graphs are compiled one after the other."""

    def __init__(self, backend: Backend, number: int, model_name: str) -> None:
        self.backend = backend
        self.number = number
        self.model_name = model_name
        self.is_on_host = False
        self.certainty = ""

    def look_at(self, inputs: list[dict[str, Any]]) -> None:
        """Note what makes the counts of the region a guess (facts 2)."""
        self.is_on_host = any(row["device"] == "cpu" and row["shape"] for row in inputs)
        strided = [row["path"] for row in inputs if row["layout"] and row["device"] == NAME]
        if strided:
            self.certainty = "±"
            self.backend.device.tell_once("strided-input", _STRIDED.format(", ".join(strided)))

    def _certainty(self, entry: Entry, outcome: Outcome) -> str:
        """Give "±" where it is only inferred that a program is the same for inputs of the host and the device."""
        known, sides = self.backend.sides.get(entry.key, (entry, set()))
        if known is not entry or not sides:
            sides = set()
            self.backend.sides[entry.key] = entry, sides
        is_inferred = outcome is Outcome.SHARED and self.is_on_host not in sides
        sides.add(self.is_on_host)
        return "±" if is_inferred else self.certainty

    def compiler(self, kind: str) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
        """Give AOTAutograd's compiler for graphs of that kind."""

        def compile_graph(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            from torch._functorch.aot_autograd import make_boxed_func

            with without_modes():
                entry = self._report(graph, kind)
                run = executable(graph, self.backend.device, kind=kind, entry=entry)
            return make_boxed_func(run)

        return compile_graph

    def _report(self, graph: fx.GraphModule, kind: str) -> Entry:
        backend = self.backend
        backend.device.counter.refresh_if_stale()
        policy = backend.device.policy
        text = text_of(graph)
        suffix = policy.suffix(policy.opt_level_compile)
        key = digest(f"{text}_{suffix}")
        backend.device.keep_graph(key, text)
        num_nodes = len(graph.graph.nodes)
        name = f"{self.model_name}_{self.number}_{kind}_{len(backend.all_metrics) + 1}"
        try:
            neffs = backend.device.counter.neffs
            entry, outcome = neffs.request(f"{digest(text)}_{suffix}", text, compile_s(num_nodes))
        except Forbidden:
            self._emit(graph, text, kind=kind, name=name, key=key, outcome=Outcome.FAILED)
            GATE.refuse(f"{kind} graph", refused_error())
        is_compiled = outcome is Outcome.COMPILED
        collectives = num_collectives(graph)
        self._measure(entry.key, name, is_compiled, num_nodes=num_nodes, has_collectives=collectives > 0)
        neff = {"neff": entry.persistent_key} if policy.cache_dir else {}
        outcome = outcome or Outcome.SHARED
        certainty = self._certainty(entry, outcome)
        self._emit(graph, text, kind=kind, name=name, key=key, outcome=outcome, certainty=certainty, **neff)
        if is_compiled:
            GATE.tell(f"{kind} graph")
        return entry

    def _emit(self, graph: fx.GraphModule, text: str, **facts: Any) -> None:
        self.backend.device.sink.emit(
            {
                "type": "compile",
                "region": self.number,
                **graph_facts(graph, text),
                **facts,
            }
        )

    def _measure(self, key: str, name: str, is_compiled: bool, *, num_nodes: int, has_collectives: bool) -> None:
        from torch._dynamo.utils import compilation_time_metrics, counters

        for phase in ("fx_passes", "lower", "compile"):
            compilation_time_metrics.setdefault(f"torch_neuronx_{phase}", []).append(0.0)
        counters[NAME]["compiled_graphs"] += 1
        counters[NAME]["graphs_with_collectives"] += has_collectives
        record = GraphMetrics(
            graph_id=key,
            graph_name=name,
            model_name=self.model_name,
            has_collectives=has_collectives,
            graph_node_count=num_nodes,
            timestamp=time.time(),
            torch_neuronx_compile_us=int(is_compiled),
        )
        self.backend.metrics.append(record)
        self.backend.all_metrics.append(record)


@functools.cache
def refused_error() -> type[CompileForbiddenError]:
    """Give the error as one that Dynamo hands to the program as it is, instead of wrapping it."""
    from torch._dynamo.exc import ShortenTraceback

    class RefusedError(CompileForbiddenError, ShortenTraceback):
        def __init__(self, message: str) -> None:
            ShortenTraceback.__init__(self, message, first_useful_frame=None)

    RefusedError.__name__ = RefusedError.__qualname__ = CompileForbiddenError.__name__
    return RefusedError


def neuron_or_default(neuron: Backend) -> Callable[..., Any]:
    """Give the backend of a `torch.compile` that names none: Neuron's where its inputs are on the device."""

    def choose(graph: fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        devices = {value.device.type for value in example_inputs if isinstance(value, torch.Tensor)}
        if NAME in devices:
            return neuron(graph, example_inputs, **kwargs)
        from torch._dynamo.backends.registry import lookup_backend

        return lookup_backend("inductor")(graph, list(example_inputs))

    choose.__name__ = NAME
    return choose
