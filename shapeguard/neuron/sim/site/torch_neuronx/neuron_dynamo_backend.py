"""The records of compiled graphs, where TorchNeuron's backend package has them (facts, section 3.4)."""

from __future__ import annotations

from torch_neuronx._surface import get_dynamo_metrics, reset_dynamo_metrics

__all__ = ["get_dynamo_metrics", "reset_dynamo_metrics"]
