"""The process groups of the backend `neuron`: gloo's, used on inner tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from shapeguard.neuron.sim import sharding
from shapeguard.neuron.sim.storage import Tensor

REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
"""Torch's reductions by their number."""
# What gloo doesn't reduce is reduced as a wider kind, and moved as bytes where nothing is reduced.
_WIDER = {
    torch.bool: torch.uint8,
    torch.int16: torch.int32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.float8_e4m3fn: torch.float32,
    torch.float8_e5m2: torch.float32,
}
_PLAIN = frozenset(
    {torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64}
)


class Groups:
    """Makes the backends of this process's groups, and runs operators of `c10d` in them on inner tensors."""

    def __init__(self) -> None:
        self._inner: dict[str, Any] = {}
        """Name of a group → a group of the same ranks for the host's tensors."""

    def create(self, options: Any, backend_options: Any) -> Any:
        """Give the backend of a new group; the signature is that of `register_backend`'s creators."""
        from torch import distributed

        sharding.register()
        gloo = distributed.ProcessGroupGloo(
            options.store, options.group_rank, options.group_size, timeout=options.timeout
        )
        # Operators look their backend up by the tensors' device, and inner tensors are the host's. The group that the
        # program has must not know the host, since Neuron's doesn't either (facts 4.3).
        inner = distributed.ProcessGroup(options.store, options.group_rank, options.group_size)
        inner._register_backend(torch.device("cpu"), distributed.ProcessGroup.BackendType.GLOO, gloo)
        self._inner[options.group_id] = inner
        return gloo

    def run(self, op: Any, args: list[Any]) -> None:
        """Run an operator on inner tensors to its end: what waits for later on Neuron is done at once here."""
        place, group = group_of(args)
        fitted: list[tuple[Tensor, Tensor]] = []
        reduces = reduction_of(args) is not None
        given = [_map(value, _fitter(fitted, reduces=reduces)) for value in args]
        given[place] = self._inner[group.group_name].boxed()
        result = op(*given)
        work = result[-1] if isinstance(result, tuple) else result
        if work is not None:
            torch.distributed.Work.unbox(work).wait()
        written = {id(tensor) for tensor in tensors(args[0])}
        for inner, used in fitted:
            if id(inner) in written:
                inner.copy_(used if reduces or used.dtype is inner.dtype else used.view(inner.dtype).view(inner.shape))


def _fitter(fitted: list[tuple[Tensor, Tensor]], *, reduces: bool) -> Callable[[Tensor], Tensor]:
    """Give what turns a tensor into one that gloo takes, noting those that it had to copy."""

    def fit(inner: Tensor) -> Tensor:
        if inner.is_contiguous() and inner.dtype in _PLAIN:
            return inner
        used = inner.contiguous()
        if inner.dtype not in _PLAIN:
            used = used.to(_WIDER.get(inner.dtype, inner.dtype)) if reduces else _bytes(used)
        fitted.append((inner, used))
        return used

    return fit


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.view(torch.uint8) if tensor.dim() else tensor.reshape(1).view(torch.uint8)


def group_of(args: Iterable[Any]) -> tuple[int, Any]:
    """Give the group among the arguments of an operator of `c10d`, with its place."""
    for place, value in enumerate(args):
        if isinstance(value, torch.ScriptObject):
            return place, torch.distributed.ProcessGroup.unbox(value)
    raise RuntimeError("a collective without a group")


def reduction_of(args: Iterable[Any]) -> str | None:
    """Name the reduction among the arguments; None where the operator only moves data."""
    # The group comes first, so a second object is the reduction.
    objects: list[Any] = [value for value in args if isinstance(value, torch.ScriptObject)]
    return REDUCTIONS[objects[1].op()] if len(objects) > 1 else None


def tensors(value: Any) -> list[Tensor]:
    """Give the tensors in an argument, in order."""
    if isinstance(value, Tensor):
        return [value]
    return [each for item in value for each in tensors(item)] if isinstance(value, (list, tuple)) else []


def _map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    return [_map(item, change) for item in value] if isinstance(value, (list, tuple)) else value
