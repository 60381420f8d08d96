"""The entry point `torch_dynamo_backends: neuron`."""

from __future__ import annotations

from torch_neuronx._device import claimed

neuron = claimed.backend
