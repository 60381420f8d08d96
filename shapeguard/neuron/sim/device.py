"""The one simulated device of this process: what its kernels need to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch

from shapeguard.core.events import Sink
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.sim.counting import Counter
from shapeguard.neuron.sim.storage import Tensor, unwrap, wrap

NAME = "neuron"


class Device:
    """Settings and counters of the device that this process claimed."""

    def __init__(self, *, inner: Literal["cpu", "meta"], sink: Sink, policy: Policy, num_devices: int) -> None:
        self.inner = torch.device(inner)
        self.is_meta = inner == "meta"
        self.sink = sink
        self.policy = policy
        self.num_devices = num_devices
        self.counter = Counter(sink, policy)
        self.keep_graph: Callable[[str, str], None] = lambda key, text: None
        """Takes each graph's key and text, for who wants to compare them in full."""
        self._told: set[str] = set()

    def tell_once(self, code: str, message: str, **facts: Any) -> None:
        """Write a problem down, the first time its code and facts occur."""
        key = f"{code}{sorted(facts.items())}"
        if key not in self._told:
            self._told.add(key)
            self.sink.emit({"type": "problem", "code": code, "message": message, **facts})

    def enter(self, value: Any) -> Any:
        """Give the inner side of an argument: of a tensor, of the tensors in a list, of the device."""
        if isinstance(value, Tensor):
            return self.enter_tensor(value)
        if isinstance(value, (list, tuple)):
            return [self.enter(item) for item in value]
        if isinstance(value, torch.device):
            return self.inner if value.type == NAME else value
        return value

    def enter_tensor(self, tensor: Tensor) -> Tensor:
        """Give the inner side of a tensor; one on the host may only be a number."""
        if not tensor.is_cpu:
            return unwrap(tensor)
        if tensor.dim():
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, neuron:0 and cpu!"
            )
        return tensor

    def enter_anywhere(self, tensor: Tensor) -> Tensor:
        """Give the inner side of a tensor that may as well be on the host (an index, a step counter)."""
        return tensor if tensor.is_cpu else unwrap(tensor)


def leave(value: Any) -> Any:
    """Give the outer side of a result."""
    if isinstance(value, Tensor):
        return wrap(value)
    if isinstance(value, (list, tuple)):
        return tuple(leave(item) for item in value) if isinstance(value, tuple) else [leave(item) for item in value]
    return value
