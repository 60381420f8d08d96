"""One kernel for each overload that TorchNeuron registers: runs it on the inner tensors and counts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.model.tables import REGISTERED, REGISTERED_BY_HAND
from shapeguard.neuron.sim.calls import entering, entering_keywords
from shapeguard.neuron.sim.counting import Plan
from shapeguard.neuron.sim.device import Device, leave
from shapeguard.neuron.sim.meta import remembering, runner
from shapeguard.neuron.sim.storage import Tensor, new_outer, set_source, wrap
from shapeguard.neuron.sim.torch_private import hide_from_dynamo, overload

Kernel = Callable[..., Any]
Op = torch._ops.OpOverload

# These have kernels of their own in `ops/`, or are composites that torch differentiates only as such.
_ELSEWHERE = frozenset(
    """
    copy_ _to_copy contiguous rms_norm index.Tensor nonzero linear_backward _fused_rms_norm_backward
    _index_put_impl_ masked_select histc _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_fused_attention_overrideable_backward one_hot repeat_interleave.Tensor
    """.split()
)


def table_kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels of the table by overload name, and those of the forms that reach them."""
    kernels: dict[str, Kernel] = {}
    for name in sorted((REGISTERED | REGISTERED_BY_HAND) - _ELSEWHERE):
        op = overload(name)
        if op is None or not _runs_inside(op):
            continue
        plan = Plan(op, name)
        kernels[name] = hide_from_dynamo(_kernel(op, plan, device))
        for other in _structured_siblings(op):
            if short_name(other) not in REGISTERED:
                make = _inplace if _writes_self(other) else _functional_as_out
                kernels[short_name(other)] = hide_from_dynamo(make(other, plan, device))
    return kernels


def counted(device: Device, name: str, inner: Kernel) -> Kernel:
    """Give the kernel of an overload whose work on inner tensors is ours, since torch has none on the CPU."""
    op = overload(name)
    assert op is not None
    plan = Plan(op, name)

    enter, first, seen = entering(op, plan, device), device.counter.first, plan.seen
    run = remembering(device, op, inner)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        parts: list[Any] = []
        result = run(*enter(args, parts.append), **kwargs)
        quick = (*parts, *map(str, kwargs.items()))
        tally = seen.get(quick)
        if tally is None:
            first(plan, quick, args, kwargs, None, result)
        else:
            tally.times += 1
        return leave(result)

    return kernel


def short_name(op: Op) -> str:
    """Give "add.Tensor" for `torch.ops.aten.add.Tensor`."""
    return op.name().removeprefix("aten::")


def _runs_inside(op: Op) -> bool:
    """Tell whether the inner tensors can run it: `batch_norm_stats` and its like exist for CUDA only."""
    keys = ("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in keys)


def written(op: Op) -> list[str]:
    """Name the arguments that the overload writes into."""
    return [a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def _writes_self(op: Op) -> bool:
    return written(op)[:1] == ["self"]


def _kernel(op: Op, plan: Plan, device: Device) -> Kernel:
    names = written(op)
    if not names:
        return _functional(op, plan, device)
    outs = [a.name for a in op._schema.arguments if a.name in names and a.kwarg_only]
    if outs:
        return _out(op, plan, device, outs)
    return _inplace(op, plan, device)


def _functional(op: Op, plan: Plan, device: Device) -> Kernel:
    run, first, seen = runner(device, op), device.counter.first, plan.seen
    enter, enter_keywords = entering(op, plan, device), entering_keywords(plan, device)
    single = len(op._schema.returns) == 1 and str(op._schema.returns[0].type) == "Tensor"
    finish: Kernel = wrap if single else leave

    def kernel(*args: Any, **kwargs: Any) -> Any:
        parts: list[Any] = []
        inner = enter(args, parts.append)
        result = run(*inner, **enter_keywords(kwargs, parts.append)) if kwargs else run(*inner)
        quick = tuple(parts)
        tally = seen.get(quick)
        if tally is None:
            first(plan, quick, args, kwargs, None, result)
        else:
            tally.times += 1
        return finish(result)

    return kernel


def _inplace(op: Op, plan: Plan, device: Device) -> Kernel:
    run, first, seen = runner(device, op), device.counter.first, plan.seen
    enter, enter_keywords = entering(op, plan, device), entering_keywords(plan, device)
    returns = bool(op._schema.returns)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        parts: list[Any] = []
        inner = enter(args, parts.append)
        if kwargs:
            run(*inner, **enter_keywords(kwargs, parts.append))
        else:
            run(*inner)
        quick = tuple(parts)
        tally = seen.get(quick)
        if tally is None:
            first(plan, quick, args, kwargs, args[0] if returns else None, inner[:1])
        else:
            tally.times += 1
        return args[0] if returns else None

    return kernel


def _out(op: Op, plan: Plan, device: Device, outs: list[str]) -> Kernel:
    run, first, seen = runner(device, op), device.counter.first, plan.seen
    enter, enter_keywords = entering(op, plan, device), entering_keywords(plan, device)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in outs]
        # An alias: the operator may resize it, and the held tensor must keep its shape.
        inner_outs = [_aliases(device.enter(out)) for out in given]
        parts: list[Any] = []
        inner = enter(args, parts.append)
        keywords = enter_keywords(kwargs, parts.append)
        run(*inner, **keywords, **dict(zip(outs, inner_outs, strict=True)))
        # Keyed before it is resized: `arange` arrives with an `out` of shape (0,).
        keyed = given[0] if len(given) == 1 and isinstance(given[0], Tensor) else None
        quick = tuple(parts) if keyed is None else (*parts, keyed.shape, keyed.dtype)
        tally = seen.get(quick)
        if tally is None:
            first(plan, quick, args, kwargs, keyed, inner_outs)
        else:
            tally.times += 1
        for out, inner_out in zip(given, inner_outs, strict=True):
            follow(out, inner_out)
        return given[0] if len(given) == 1 else tuple(given)

    return kernel


def _aliases(value: Any) -> Any:
    return [item.detach() for item in value] if isinstance(value, list) else value.detach()


def follow(outer: Any, inner: Any) -> None:
    """Make an outer tensor have the geometry that its inner side got from an operator that resized it."""
    if isinstance(outer, (list, tuple)):
        for each, its in zip(outer, inner, strict=True):
            follow(each, its)
    elif outer.shape != inner.shape:
        fresh = new_outer(inner.clone())
        set_source(outer, fresh.untyped_storage(), 0, fresh.shape, fresh.stride())


def _structured_siblings(op: Op) -> list[Op]:
    """Give the functional and in-place forms that torch's composite would bring to this `out` form."""
    names = written(op)
    if not names or not all(a.kwarg_only for a in op._schema.arguments if a.name in names):
        return []
    wanted = _shape_of_arguments(op)
    base = op._schema.name.removeprefix("aten::")
    found = []
    for packet_name in (base, f"{base}_"):
        packet = getattr(torch.ops.aten, packet_name, None)
        for variant in packet.overloads() if packet is not None else ():
            other = getattr(packet, variant)
            if other is not op and _shape_of_arguments(other) == wanted and _is_structured(other):
                found.append(other)
    return found


def _shape_of_arguments(op: Op) -> list[tuple[str, str]]:
    outs = {a.name for a in op._schema.arguments if a.kwarg_only and a.name in written(op)}
    return [(a.name, str(a.type)) for a in op._schema.arguments if a.name not in outs]


def _is_structured(op: Op) -> bool:
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return bool(has_kernel(op.name(), "CompositeExplicitAutogradNonFunctional"))


def _functional_as_out(op: Op, plan: Plan, device: Device) -> Kernel:
    """Do in one trip what torch's composite does in three (empty, as_strided, `out`); the key is that of `out`."""
    run, first, seen = runner(device, op), device.counter.first, plan.seen
    enter, enter_keywords = entering(op, plan, device), entering_keywords(plan, device)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        parts: list[Any] = []
        inner = enter(args, parts.append)
        result = run(*inner, **enter_keywords(kwargs, parts.append)) if kwargs else run(*inner)
        # The result's shape follows from what the key has, but for what is keyed by type and says a shape.
        outer, out = (wrap(result), result) if isinstance(result, Tensor) else (leave(result), None)
        quick = tuple(parts) if out is None else (*parts, out.shape, out.dtype)
        tally = seen.get(quick)
        if tally is None:
            first(plan, quick, args, kwargs, None if out is None else outer, result)
        else:
            tally.times += 1
        return outer

    return kernel
