"""The process group `neuron` (facts, sections 1.6 and 4.3): its collectives, on inner tensors, counted.

The operators of `c10d` that carry tensors dispatch on the device. Here they are called again with the inner tensors,
and write into the inner storage in place. What is compiled for them, one graph for each operator, shapes, dtypes,
replica groups and reduction, is counted.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch

from shapeguard.neuron.sim import alone, data_parallel
from shapeguard.neuron.sim.alone import AloneGroups
from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.groups import Groups, group_of, reduction_of, tensors
from shapeguard.neuron.sim.replicas import replicas_of
from shapeguard.neuron.sim.torch_private import hide_from_dynamo

# Facts 4.3: not implemented there, so refused here.
_REFUSED = ("send", "recv_", "recv_any_source_", "monitored_barrier_")
_SPLIT_FROM_BYTES = 512 * 2**20
"""Facts 1.6: larger tensors are split into more operators, how is not known."""


def register(device: Device, *, is_alone: bool = False) -> torch.library.Library | None:
    """Make `init_process_group("neuron")` work; None where this torch has no distributed part.

    `is_alone` makes it work without the other ranks: a simulated world.
    """
    if not torch.distributed.is_available():
        return None
    from torch import distributed

    groups = AloneGroups() if is_alone else Groups()
    distributed.Backend.register_backend("neuron", groups.create, extended_api=True, devices=["neuron"])
    library = torch.library.Library("c10d", "IMPL")
    with warnings.catch_warnings():
        # Torch says, once an operator, that its own kernel is replaced: that is what is meant.
        warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered kernel")
        for name in _tensor_operators():
            op = getattr(torch.ops.c10d, name).default
            library.impl(name, hide_from_dynamo(_kernel(device, groups, op)), "PrivateUse1", allow_override=True)
            if is_alone:
                library.impl(name, hide_from_dynamo(_host_kernel(groups, op)), "CPU", allow_override=True)
    data_parallel.watch()
    if is_alone:
        alone.patch(device)
    return library


def _tensor_operators() -> list[str]:
    """Name the operators of `c10d` that have a kernel for tensors of the host and one for other backends."""
    names = sorted(name for name in torch._C._dispatch_get_all_op_names() if name.startswith("c10d::"))
    return [
        name.removeprefix("c10d::")
        for name in names
        if _has(name, "CPU") and (_has(name, "PrivateUse1") or _has(name, "Meta"))
    ]


def _has(name: str, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))


def _kernel(device: Device, groups: Groups | AloneGroups, op: torch._ops.OpOverload) -> Any:
    """Give the kernel of an operator for tensors of the device."""
    name = op._schema.name.removeprefix("c10d::")

    def kernel(*args: Any) -> Any:
        if name in _REFUSED:
            raise RuntimeError(f"Backend neuron does not support {name.rstrip('_')}")
        _count(device, name, args)
        inner = [device.enter(value) for value in args]
        if name == "barrier":
            # Ranks meet here even where no tensor has values.
            inner[0] = torch.zeros(1)
        if any(tensor.is_meta for tensor in tensors(inner)):
            # No values, nothing to send. What keeps its values under `--inner meta` gets what is not known: zero.
            for tensor in tensors(inner[0]):
                if not tensor.is_meta and not _is_in_place(name):
                    tensor.zero_()
        else:
            groups.run(op, inner)
        return _result(op, args)

    return kernel


def _host_kernel(groups: Groups | AloneGroups, op: torch._ops.OpOverload) -> Any:
    """Give the kernel of an operator for the host's tensors, where no other rank is there."""

    def kernel(*args: Any) -> Any:
        groups.run(op, list(args))
        return _result(op, args)

    return kernel


def _is_in_place(name: str) -> bool:
    return name in ("allreduce_", "allreduce_coalesced_", "reduce_", "broadcast_")


def _result(op: torch._ops.OpOverload, args: tuple[Any, ...]) -> Any:
    """Give what the operator returns: what it wrote, and a work that is done and has it as its result."""
    returns = op._schema.returns
    if not returns:
        return None
    future: Any = torch.futures.Future()
    future.set_result(tensors(args[0]))
    make: Any = sys.modules["torch._C._distributed_c10d"]
    work = make._create_work_from_future(future).boxed()
    return (args[0], work) if len(returns) > 1 else work


def _count(device: Device, name: str, args: tuple[Any, ...]) -> None:
    """Count what is compiled for one eager collective (facts 1.2 and 1.6)."""
    _, group = group_of(args)
    device.counter.collective(
        name.strip("_"),
        args,
        groups=replicas_of(group),
        reduction=reduction_of(args) or "",
        certainty=certainty_of(args),
    )
    if name == "barrier" and group.size() < torch.distributed.get_world_size():
        device.tell_once("barrier", "a barrier of a part of the ranks: TorchNeuron had it for the default group only")


def certainty_of(args: tuple[Any, ...]) -> str:
    """Give "±" for a collective that Neuron would split into more of them."""
    return "±" if any(t.numel() * t.itemsize > _SPLIT_FROM_BYTES for t in tensors(args)) else ""
