"""DistributedDataParallel's search for parameters without a gradient, which the simulated device cannot follow.

It asks in C++ for pinned memory, for which torch has no hook in Python. It is left out: gradients are the same, one
small collective a step is missing, and a model that has such parameters gets torch's own error in its second step.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from shapeguard.neuron.sim.device import NAME, Device


def watch(device: Device) -> None:
    """Leave the search out for models on the device, and say so."""
    from torch.nn.parallel import DistributedDataParallel

    plain = DistributedDataParallel.__init__

    @functools.wraps(plain)
    def __init__(self: Any, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        first = next(module.parameters(), None)
        if kwargs.get("find_unused_parameters") and first is not None and first.device.type == NAME:
            kwargs["find_unused_parameters"] = False
            device.tell_once(
                "unused-parameters",
                "DistributedDataParallel's find_unused_parameters is left out: its collective is not counted",
            )
        plain(self, module, *args, **kwargs)

    DistributedDataParallel.__init__ = __init__  # type: ignore[method-assign]
