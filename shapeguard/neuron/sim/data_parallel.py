"""DistributedDataParallel's search for parameters without a gradient.

Its C++ part copies a list of the parameters in use from pinned memory of the host, which it asks of the device's hooks,
and Python has none to give. So from the first such model on, `empty_strided` of the host gives plain memory instead:
all of the host's memory counts as pinned (facts 4.2).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from shapeguard.neuron.sim.device import NAME
from shapeguard.neuron.sim.torch_private import hide_from_dynamo

_LIBRARIES: list[torch.library.Library] = []


def watch() -> None:
    """Make the search work for models on the device."""
    from torch.nn.parallel import DistributedDataParallel

    plain = DistributedDataParallel.__init__

    @functools.wraps(plain)
    def __init__(self: Any, module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        plain(self, module, *args, **kwargs)
        first = next(module.parameters(), None)
        searches = self.find_unused_parameters or kwargs.get("static_graph")
        if searches and first is not None and first.device.type == NAME:
            _give_plain_memory()

    DistributedDataParallel.__init__ = __init__  # type: ignore[method-assign]


@functools.cache
def _give_plain_memory() -> None:
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        # Torch says that its own kernel is replaced: that is what is meant.
        warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered kernel")
        library.impl("empty_strided", hide_from_dynamo(_empty_strided), "CPU", allow_override=True)
    _LIBRARIES.append(library)


def _empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, **place: Any) -> torch.Tensor:
    """Give memory of the host, pinned or not; `place` says nothing else."""
    span = 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) if all(size) else 0
    return torch.empty(span, dtype=dtype, device="cpu").as_strided(size, stride)
