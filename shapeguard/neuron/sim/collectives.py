"""The process group `neuron`: gloo's own, run on the inner tensors (facts, section 4.3).

Torch asks for one backend a device. `neuron` gives gloo for the device and for the host, so that object collectives and
tensors of the host work too. The `c10d` operators that carry tensors dispatch on the device: here they are called again
with the inner tensors, end in gloo, and write into the inner storage in place.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.storage import Tensor
from shapeguard.neuron.sim.torch_private import hide_from_dynamo

# Facts 4.3: not implemented there, so refused here.
_REFUSED = ("send", "recv_", "recv_any_source_", "monitored_barrier_")
# Gloo has no kernel on `meta` for these: the call would reach it with an address that is none.
_NO_META = (
    "allreduce_coalesced_",
    "allgather_coalesced_",
    "allgather_into_tensor_coalesced_",
    "reduce_scatter_tensor_coalesced_",
)


def register(device: Device) -> torch.library.Library | None:
    """Make `init_process_group("neuron")` work; None where this torch has no distributed part."""
    if not torch.distributed.is_available():
        return None
    from torch import distributed

    distributed.Backend.register_backend("neuron", _create, extended_api=True, devices=["neuron", "cpu"])
    library = torch.library.Library("c10d", "IMPL")
    with warnings.catch_warnings():
        # Torch says, once an operator, that its own kernel is replaced: that is what is meant.
        warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered kernel")
        for name in _tensor_operators():
            library.impl(name, hide_from_dynamo(_kernel(device, name)), "PrivateUse1", allow_override=True)
    return library


def _create(options: Any, backend_options: Any) -> Any:
    from torch.distributed import ProcessGroupGloo

    return ProcessGroupGloo(options.store, options.group_rank, options.group_size, timeout=options.timeout)


def _tensor_operators() -> list[str]:
    """Name the operators of `c10d` that have a kernel for tensors of the host and one for other backends."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name.removeprefix("c10d::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("c10d::")]
    return sorted(n for n in names if has_kernel(f"c10d::{n}", "CPU") and has_kernel(f"c10d::{n}", "PrivateUse1"))


def _kernel(device: Device, name: str) -> Any:
    op = getattr(torch.ops.c10d, name).default

    def kernel(*args: Any) -> Any:
        if name in _REFUSED:
            raise RuntimeError(f"ProcessGroupNeuron does not support {name.rstrip('_')}")
        _count(device, name, args)
        if device.is_meta and name in _NO_META:
            # A finished piece of work, got from an operator that `meta` has.
            return torch.ops.c10d.broadcast_([_first(args)], _group(args), 0, 0, True, -1)[1]
        result = op(*[device.enter(value) for value in args])
        return _outer(result, args)

    return kernel


def _outer(result: Any, args: tuple[Any, ...]) -> Any:
    """Give the outer tensors where the operator gives back those it wrote; its work stays as it is."""
    if not isinstance(result, tuple):
        return result
    written = [args[0]] if isinstance(args[0], (list, Tensor)) else []
    return tuple(
        written[0] if index == 0 and written and not _is_work(value) else value for index, value in enumerate(result)
    )


def _is_work(value: Any) -> bool:
    return isinstance(value, torch.ScriptObject)


def _first(args: tuple[Any, ...]) -> Tensor:
    for value in args:
        while isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, Tensor):
            return torch.empty(value.shape, dtype=value.dtype, device="meta")
    raise RuntimeError("a collective without a tensor")


def _group(args: tuple[Any, ...]) -> Any:
    return next(value for value in args if isinstance(value, torch.ScriptObject))


def _count(device: Device, name: str, args: tuple[Any, ...]) -> None:
    """Count one eager collective: keyed by operator, shapes, dtypes and the group's size (facts 1.6)."""
    device.counter.collective(name.rstrip("_"), args)
