"""The records that `get_dynamo_metrics()` gives, one for each graph that was lowered (facts, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphMetrics:
    """One compiled graph, with TorchNeuron's names; the simulation takes no time to lower or compile it."""

    graph_id: str
    """The whole key."""
    graph_name: str
    model_name: str
    has_collectives: bool
    graph_node_count: int
    timestamp: float
    """Seconds since the epoch."""
    torch_neuronx_fx_passes_us: int = 0
    torch_neuronx_lower_us: int = 0
    torch_neuronx_compile_us: int = 0
