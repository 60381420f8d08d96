"""A world that isn't there: one rank runs, and every other is taken to hold the same data as this one.

So sizes and shapes are those of the real run wherever they don't depend on another rank's values, sums are finite, and
what is gathered can be read. Nothing is sent, nothing waits.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, urlparse

import torch

from shapeguard.neuron.sim import sharding
from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.groups import group_of, reduction_of, tensors
from shapeguard.neuron.sim.storage import Tensor


class AloneGroups:
    """Stands in for `Groups`: the same interface, and no other process."""

    def create(self, options: Any, backend_options: Any) -> Any:
        """Give torch's own backend that does nothing; the operators never reach it."""
        sharding.register()
        return _nobody(options.group_rank, options.group_size)

    def run(self, op: Any, args: list[Any]) -> None:
        """Do to inner tensors what the operator would, if all ranks gave what this one gives."""
        name = op._schema.name.removeprefix("c10d::")
        work = _WORKS.get(name)
        if work is None:
            return
        _, group = group_of(args)
        work(args, group.rank(), group.size())
        _reduce(reduction_of(args), tensors(args[0]), group.size())


class _AnyGroup(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance).__name__ == "FakeProcessGroup"


class _Gloo(metaclass=_AnyGroup):
    """Stands where torch makes a group of its own for the host's tensors; a class, since torch asks for its kind."""

    def __new__(cls, store: Any, rank: int, size: int, timeout: Any = None) -> Any:
        return _nobody(rank, size)


def _nobody(rank: int, size: int) -> Any:
    from torch._C._distributed_c10d import FakeProcessGroup

    return FakeProcessGroup._create_internal(rank, size)


def _reduce(reduction: str | None, written: Sequence[Tensor], size: int) -> None:
    """Combine as many equal values as there are ranks."""
    for tensor in written:
        if reduction in ("SUM", "PREMUL_SUM") and tensor.dtype is not torch.bool:
            tensor.mul_(size)
        elif reduction == "PRODUCT" and tensor.dtype is not torch.bool:
            tensor.pow_(size)
        elif reduction == "BXOR" and size % 2 == 0:
            tensor.zero_()


def _gather_lists(args: list[Any], rank: int, size: int) -> None:
    """`allgather_`, `gather_`: a list of outputs for each input."""
    for outputs, source in zip(args[0], args[1], strict=False):
        for output in outputs:
            _fill(output, source)


def _gather_coalesced(args: list[Any], rank: int, size: int) -> None:
    """`allgather_coalesced_`: a list of outputs for each rank."""
    for outputs in args[0]:
        for output, source in zip(outputs, args[1], strict=False):
            _fill(output, source)


def _gather_flat(args: list[Any], rank: int, size: int) -> None:
    """`_allgather_base_` and its coalesced form: one output holds all ranks' parts."""
    for output, source in zip(tensors(args[0]), tensors(args[1]), strict=True):
        for part in output.view(-1).chunk(size):
            _fill(part, source)


def _scatter_flat(args: list[Any], rank: int, size: int) -> None:
    """`_reduce_scatter_base_` and its coalesced form: one input holds all ranks' parts."""
    for output, source in zip(tensors(args[0]), tensors(args[1]), strict=True):
        _fill(output, source.reshape(-1).chunk(size)[rank])


def _scatter_lists(args: list[Any], rank: int, size: int) -> None:
    """`reduce_scatter_`, `scatter_`: a list of inputs for each output; a receiver of `scatter_` has none."""
    for output, sources in zip(args[0], args[1], strict=False):
        if len(sources) > rank:
            _fill(output, sources[rank])


def _exchange_lists(args: list[Any], rank: int, size: int) -> None:
    """`alltoall_`: each of the others sends what this rank would send to one of its number."""
    for output in args[0]:
        _fill(output, args[1][rank])


def _exchange_flat(args: list[Any], rank: int, size: int) -> None:
    """`alltoall_base_`, with or without sizes of the parts."""
    output, source, _, received, sent = args[:5]
    parts = source.split(list(sent)) if sent else source.chunk(size)
    for part in output.split(list(received)) if received else output.chunk(size):
        _fill(part, parts[rank] if len(parts) > rank else source[:0])


def _fill(output: Tensor, source: Tensor) -> None:
    """Copy as much as there is room for, whatever the shapes."""
    count = min(output.numel(), source.numel())
    if output.shape == source.shape:
        output.copy_(source)
    elif output.is_contiguous():
        output.view(-1)[:count].copy_(source.reshape(-1)[:count])


def _nothing(args: list[Any], rank: int, size: int) -> None:
    """`allreduce_`, `broadcast_` and their like work in place: the data is there already."""


_WORKS: dict[str, Callable[[list[Any], int, int], None]] = {
    "allreduce_": _nothing,
    "allreduce_coalesced_": _nothing,
    "reduce_": _nothing,
    "allgather_": _gather_lists,
    "gather_": _gather_lists,
    "allgather_coalesced_": _gather_coalesced,
    "_allgather_base_": _gather_flat,
    "allgather_into_tensor_coalesced_": _gather_flat,
    "_reduce_scatter_base_": _scatter_flat,
    "reduce_scatter_tensor_coalesced_": _scatter_flat,
    "reduce_scatter_": _scatter_lists,
    "scatter_": _scatter_lists,
    "alltoall_": _exchange_lists,
    "alltoall_base_": _exchange_flat,
}


def patch(device: Device) -> None:
    """Let groups be made without a meeting of the ranks, and objects of others be missed with a word."""
    from torch.distributed import distributed_c10d

    handlers: Any = sys.modules["torch.distributed.rendezvous"]
    for scheme in ("env", "tcp", "file"):
        handlers._rendezvous_handlers[scheme] = _meet
    setattr(distributed_c10d, "ProcessGroupGloo", _Gloo)  # noqa: B010
    unnumbered: Any = lambda self: None  # noqa: E731
    backend: Any = type(_nobody(0, 1))
    backend._set_sequence_number_for_group = unnumbered
    for name in ("broadcast_object_list", "scatter_object_list"):
        ours = _only_from_here(device, getattr(distributed_c10d, name))
        setattr(distributed_c10d, name, ours)
        setattr(torch.distributed, name, ours)


def _meet(url: str, *args: Any, **kwargs: Any) -> Any:
    """Give a store, this rank and the size of the world, as a rendezvous does."""
    from shapeguard.neuron.sim.alone_store import AloneStore

    asked = parse_qs(urlparse(url).query)
    rank = int(asked.get("rank", [os.environ.get("RANK", "0")])[0])
    size = int(asked.get("world_size", [os.environ.get("WORLD_SIZE", "1")])[0])
    yield AloneStore(), rank, size


def _only_from_here(device: Device, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def send(objects: list[Any], *args: Any, **kwargs: Any) -> Any:
        is_scatter = plain.__name__ == "scatter_object_list"
        place = 1 if is_scatter else 0
        source = kwargs.get("src", args[place] if len(args) > place else 0) or 0
        if source == torch.distributed.get_rank(kwargs.get("group")):
            return plain(objects, *args, **kwargs)
        device.tell_once(
            "no-rank",
            f"rank {source} is not there in this simulated world: nothing came by {plain.__name__}",
        )
        return None

    return send
