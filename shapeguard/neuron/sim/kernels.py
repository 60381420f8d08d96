"""One kernel for each overload that TorchNeuron registers: runs it on the inner tensors and counts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.model.tables import REGISTERED, REGISTERED_BY_HAND
from shapeguard.neuron.sim.counting import Plan
from shapeguard.neuron.sim.device import Device, leave
from shapeguard.neuron.sim.meta import runner
from shapeguard.neuron.sim.storage import Tensor, new_outer, set_source, wrap
from shapeguard.neuron.sim.torch_private import hide_from_dynamo, overload

Kernel = Callable[..., Any]
Op = torch._ops.OpOverload

# These have kernels of their own in `ops/`, or are composites that torch differentiates only as such.
_ELSEWHERE = frozenset(
    """
    copy_ _to_copy contiguous rms_norm index.Tensor nonzero linear_backward _fused_rms_norm_backward
    _index_put_impl_ masked_select histc _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_fused_attention_overrideable_backward
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

    def kernel(*args: Any, **kwargs: Any) -> Any:
        result = inner(*[device.enter(value) for value in args], **kwargs)
        device.counter.eager(plan, args, kwargs)
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


def entry(op: Op, device: Device) -> Callable[[tuple[Any, ...]], list[Any]]:
    """Give what turns the positional arguments of the overload into inner ones.

    A Python number may arrive in a tensor's place (`x % 3`): torch lets only a few operators take it so, for the others
    it becomes a tensor again.
    """
    enter = device.enter
    places = _number_places(op)
    if not places or torch._C._should_allow_numbers_as_tensors(op._schema.name.removeprefix("aten::")):
        return lambda args: [enter(value) for value in args]

    def enter_all(args: tuple[Any, ...]) -> list[Any]:
        return [
            torch.tensor(value) if i in places and isinstance(value, _NUMBERS) else enter(value)
            for i, value in enumerate(args)
        ]

    return enter_all


_NUMBERS = (int, float, complex)


def _number_places(op: Op) -> frozenset[int]:
    return frozenset(i for i, a in enumerate(op._schema.arguments) if str(a.type) == "Tensor" and not a.kwarg_only)


def _functional(op: Op, plan: Plan, device: Device) -> Kernel:
    run, enter, count = runner(device, op), device.enter, device.counter.eager
    enter_all = entry(op, device)
    single = len(op._schema.returns) == 1 and str(op._schema.returns[0].type) == "Tensor"
    finish: Kernel = wrap if single else leave

    def kernel(*args: Any, **kwargs: Any) -> Any:
        inner = enter_all(args)
        result = run(*inner, **{k: enter(v) for k, v in kwargs.items()}) if kwargs else run(*inner)
        count(plan, args, kwargs)
        return finish(result)

    return kernel


def _inplace(op: Op, plan: Plan, device: Device) -> Kernel:
    run, enter, count = runner(device, op), device.enter, device.counter.eager
    enter_all = entry(op, device)
    returns = bool(op._schema.returns)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        run(*enter_all(args), **{k: enter(v) for k, v in kwargs.items()})
        count(plan, args, kwargs, args[0] if returns else None)
        return args[0] if returns else None

    return kernel


def _out(op: Op, plan: Plan, device: Device, outs: list[str]) -> Kernel:
    run, enter, count = runner(device, op), device.enter, device.counter.eager
    enter_all = entry(op, device)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in outs]
        # An alias: the operator may resize it, and the held tensor must keep its shape.
        inner_outs = [_aliases(enter(out)) for out in given]
        keywords = {k: enter(v) for k, v in kwargs.items()}
        run(*enter_all(args), **keywords, **dict(zip(outs, inner_outs, strict=True)))
        # Keyed before it is resized: `arange` arrives with an `out` of shape (0,).
        count(plan, args, kwargs, given[0] if len(given) == 1 and isinstance(given[0], Tensor) else None)
        for out, inner in zip(given, inner_outs, strict=True):
            follow(out, inner)
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
    run, enter, count = runner(device, op), device.enter, device.counter.eager
    enter_all = entry(op, device)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        inner = enter_all(args)
        result = run(*inner, **{k: enter(v) for k, v in kwargs.items()}) if kwargs else run(*inner)
        if isinstance(result, Tensor):
            outer = wrap(result)
            count(plan, args, kwargs, outer)
            return outer
        count(plan, args, kwargs)
        return leave(result)

    return kernel
