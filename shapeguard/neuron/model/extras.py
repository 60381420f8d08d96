"""Operators that run more graphs than their own (facts, section 1.6): bounds checks of an index, counts of a mask."""

from __future__ import annotations

from shapeguard.neuron.model.eager import Argument, Call, Spec, TypeOf, Value
from shapeguard.neuron.model.policy import Policy

_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
_BOUNDS_CHECKED = {
    "index.Tensor": "indices",
    "_index_put_impl_": "indices",
    "index_select": "index",
    "scatter": "index",
}


def extras(call: Call, policy: Policy) -> list[Call]:
    """Give the graphs that Neuron runs beside the operator's own, in order."""
    if call.op in _BOUNDS_CHECKED and policy.checks_bounds:
        return _bounds_checks(dict(call.arguments).get(_BOUNDS_CHECKED[call.op]))
    if call.op in ("scatter_add_", "scatter_add"):
        return [_copy(spec) for name, spec in call.arguments if name == "self" and isinstance(spec, Spec)]
    if call.op == "masked_select":
        return [Call(op="sum", arguments=(("self", spec),)) for name, spec in call.arguments if name == "mask"]
    if call.op == "one_hot":
        return [Call(op=op, arguments=(call.arguments[0],), certainty="±") for op in ("max", "min")]
    return []


def _bounds_checks(index: Argument | None) -> list[Call]:
    """Give `ge`, `lt` and `any` for each integer index. I: about three graphs an index shape and dtype."""
    specs = [index] if isinstance(index, Spec) else list(index) if isinstance(index, tuple) else []
    calls = []
    for spec in specs:
        if not isinstance(spec, Spec) or spec.dtype not in _INTEGERS:
            continue
        bare = Spec(spec.shape, spec.dtype)
        flags = Spec(spec.shape, "bool")
        for op in ("ge.Scalar_out", "lt.Scalar_out"):
            arguments: tuple[tuple[str, Argument], ...] = (("self", bare), ("other", TypeOf("int")), ("out", flags))
            calls.append(Call(op=op, arguments=arguments, certainty="±"))
        calls.append(Call(op="any.all_out", arguments=(("self", flags), ("out", Spec((), "bool"))), certainty="±"))
    return calls


def _copy(spec: Spec) -> Call:
    return Call(op="copy_", arguments=(("self", Spec(spec.shape, spec.dtype)), ("src", Spec(spec.shape, spec.dtype))))


def masked_index(shape: Spec, masks: tuple[Spec | None, ...], count: int) -> list[Call]:
    """Give the graphs of `x[mask]`: `nonzero` of the mask, then `index` with as many rows as the mask has Trues."""
    calls = [
        Call(op="nonzero", arguments=(("self", Spec(mask.shape, mask.dtype)),))
        for mask in masks
        if mask is not None and mask.dtype in ("bool", "uint8")
    ]
    rows: tuple[Argument, ...] = tuple(
        TypeOf("NoneType") if mask is None else Spec((count,), "int64") if mask.dtype == "bool" else mask
        for mask in masks
    )
    calls.append(Call(op="index.Tensor", arguments=(("self", shape), ("indices", rows), ("count", Value(str(count))))))
    return calls
