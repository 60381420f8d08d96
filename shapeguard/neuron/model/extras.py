"""Operators that run more graphs than their own, or others in their place (facts, section 1.6).

Bounds checks of an index, counts of a mask, lists that are taken tensor by tensor.
"""

from __future__ import annotations

from collections.abc import Iterable

from shapeguard.neuron.model.eager import Argument, Call, Spec, TypeOf, Value
from shapeguard.neuron.model.policy import Policy

_INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
_MASKS = ("bool", "uint8")
_BOUNDS_CHECKED = {
    "index.Tensor": "indices",
    "index.Tensor_out": "indices",
    "_index_put_impl_": "indices",
    "index_select": "index",
    "index_select.out": "index",
    **dict.fromkeys(
        """
        scatter.src scatter.src_out scatter.value_out scatter.reduce scatter.reduce_out scatter.value_reduce_out
        """.split(),
        "index",
    ),
}
"""Operators whose index is checked by eager operators; gather, scatter_add, index_add and index_copy have none."""
_PER_TENSOR = {
    "_foreach_add_.ScalarList": "add_.Tensor",
    "_foreach_sub_.ScalarList": "sub_.Tensor",
    "_foreach_mul_.ScalarList": "mul.out",
    "_foreach_div_.ScalarList": "div_.Tensor",
}
"""In-place operators on a list that run one kernel for each tensor of it."""


def parts(call: Call, policy: Policy) -> list[Call]:
    """Give the graphs that Neuron runs for one call of a registered operator, in order."""
    if call.op in _PER_TENSOR:
        return _per_tensor(call)
    return [*_before(call, policy), call]


def _before(call: Call, policy: Policy) -> list[Call]:
    arguments = dict(call.arguments)
    if call.op in _BOUNDS_CHECKED and policy.checks_bounds and arguments.get("unsafe") != Value("True"):
        return _bounds_checks(arguments.get(_BOUNDS_CHECKED[call.op]))
    if call.op == "scatter_add_":
        return [_copy(arguments["self"])]
    if call.op == "masked_select":
        return [Call(op="sum", arguments=(("self", arguments["mask"]),))]
    if call.op == "one_hot":
        return [Call(op=op, arguments=(("self", arguments["self"]),)) for op in ("max", "min")]
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


def _copy(argument: Argument) -> Call:
    assert isinstance(argument, Spec)
    bare = Spec(argument.shape, argument.dtype)
    return Call(op="copy_", arguments=(("self", bare), ("dtype", Value(argument.dtype))))


def _per_tensor(call: Call) -> list[Call]:
    tensors, scalars = dict(call.arguments)["self"], dict(call.arguments).get("scalars", ())
    assert isinstance(tensors, tuple) and isinstance(scalars, tuple)
    return [
        Call(op=_PER_TENSOR[call.op], arguments=(("self", each), ("other", scalar), ("out", each)))
        for each, scalar in zip(tensors, scalars, strict=False)
    ]


def masked_index(shape: Spec, masks: Iterable[Spec | None], count: int) -> list[Call]:
    """Give the graphs of `x[mask]`: `nonzero` of the mask, then `index` with as many rows as the mask has Trues."""
    masks = tuple(masks)
    call = Call(op="index.Tensor", arguments=(("self", shape), ("indices", _rows(masks, count))))
    return [*_nonzeros(masks), call]


def masked_put(call: Call, count: int, *, is_one_value: bool) -> list[Call]:
    """Give the graphs of `x[mask] = values`: one value is chosen by `where`, of a shape that no mask changes."""
    indices = dict(call.arguments)["indices"]
    assert isinstance(indices, tuple)
    masks = tuple(each if isinstance(each, Spec) else None for each in indices)
    if is_one_value and all(mask is None or mask.dtype in _MASKS for mask in masks):
        return [call]
    rows = _rows(masks, count)
    arguments = tuple((name, rows if name == "indices" else value) for name, value in call.arguments)
    return [*_nonzeros(masks), Call(op=call.op, arguments=arguments)]


def _nonzeros(masks: tuple[Spec | None, ...]) -> list[Call]:
    return [
        Call(op="nonzero", arguments=(("self", Spec(mask.shape, mask.dtype)),))
        for mask in masks
        if mask is not None and mask.dtype in _MASKS
    ]


def _rows(masks: tuple[Spec | None, ...], count: int) -> tuple[Argument, ...]:
    """Give the indices that stand for masks: one for each of a mask's dimensions, as long as it has Trues."""
    rows: list[Argument] = []
    for mask in masks:
        if mask is None:
            rows.append(TypeOf("NoneType"))
        elif mask.dtype in _MASKS:
            rows += [Spec((count,), "int64")] * len(mask.shape)
        else:
            rows.append(mask)
    return tuple(rows)
