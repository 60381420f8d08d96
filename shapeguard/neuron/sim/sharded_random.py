"""Random numbers of a DTensor on `neuron`: drawn by the host's generator, which knows no offsets as CUDA's does.

Every rank draws one seed, the same on all; each shard then draws its numbers from a generator of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@functools.cache
def apply() -> None:
    """Change DTensor's way of drawing, for meshes of this device only."""
    from torch.distributed.tensor import _random

    plain = _random.OffsetBasedRNGTracker._distribute_region

    @contextmanager
    def distribute(self: Any, spec: Any, generator: Any = None) -> Iterator[None]:
        if spec.mesh.device_type != "neuron":
            with plain(self, spec, generator):
                yield
            return
        seed = int(torch.randint(2**62, (), generator=generator)) + _shard(spec)
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(seed)
            yield

    region: Any = distribute
    _random.OffsetBasedRNGTracker._distribute_region = region  # type: ignore[method-assign]


def _shard(spec: Any) -> int:
    """Number the part of the whole that this rank holds; ranks with the same part have the same number."""
    coordinate = spec.mesh.get_coordinate() or ()
    number = 0
    for place, size, index in zip(spec.placements, spec.mesh.shape, coordinate, strict=False):
        if place.is_shard():
            number = number * int(size) + int(index)
    return number
