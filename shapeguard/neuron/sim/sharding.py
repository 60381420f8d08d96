"""How DTensor splits operators that TorchNeuron registers whole: it brings such rules too (facts 4.3).

Torch has rules for the parts that other devices take these apart into. Each rule is a list of pairs: where the results
lie, and where the arguments must lie for it, along one dimension of a mesh.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.sim import sharded_random

_LIBRARIES: list[torch.library.Library] = []
Rules = list[tuple[list[Any], list[Any]]]


@functools.cache
def register() -> None:
    """Tell DTensor, once; to be called when the program makes its first group, since this imports DTensor."""
    sharded_random.apply()
    aten: Any = torch.ops.aten
    library = torch.library.Library("aten", "IMPL")
    library.impl("linear_backward", _shapes_of_linear_backward, "Meta", allow_override=True)
    _LIBRARIES.append(library)
    # Graphs are traced with torch's dispatcher in Python, which has shape functions of its own.
    aten.linear_backward.default.py_kernels[torch._C.DispatchKey.Meta] = _shapes_of_linear_backward
    aten.linear_backward.default._dispatch_cache.clear()
    attention = aten._scaled_dot_product_fused_attention_overrideable.default
    attention_backward = aten._scaled_dot_product_fused_attention_overrideable_backward.default
    _add(aten.linear.default, _linear, tensors=3)
    _add(aten.linear_backward.default, _linear_backward, tensors=3)
    _add(attention, _attention, tensors=4)
    _add(attention_backward, _attention_backward, tensors=5)


def _add(op: torch._ops.OpOverload, rule: Callable[..., Rules], *, tensors: int) -> None:
    """Register a rule. What follows the first arguments, the tensors, is part of what DTensor remembers a result by."""
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor.experimental import register_sharding

    register_sharding(op)(rule)
    propagator: Any = DTensor._op_dispatcher.sharding_propagator
    propagator.op_to_schema_info[op] = RuntimeSchemaInfo(tensors, needs_pytree=True)


def _shapes_of_linear_backward(x: Any, grad: Any, weight: Any, output_mask: Any) -> Any:
    """Give blanks for what is asked for: torch's own function gives a bias too, where only a weight is asked for."""
    return (
        grad.new_empty(x.shape) if output_mask[0] else None,
        grad.new_empty(weight.shape) if output_mask[1] else None,
        grad.new_empty(weight.shape[:1]) if output_mask[2] else None,
    )


def _placements() -> tuple[Any, Any, Any]:
    from torch.distributed.tensor import Partial, Replicate, Shard

    return Partial, Replicate, Shard


def _linear(x: Any, weight: Any, bias: Any = None) -> Rules:
    partial, replicate, shard = _placements()
    last = x.ndim - 1
    whole, part, has_bias = replicate(), partial(), bias is not None

    def inputs(*placements: Any) -> list[Any]:
        return [*placements[:2], placements[2] if has_bias else None]

    rules = [
        ([whole], inputs(whole, whole, whole)),
        ([shard(last)], inputs(whole, shard(0), shard(0))),
        ([part], inputs(shard(last), shard(1), part)),
        ([part], inputs(part, whole, part)),
    ]
    return rules + [([shard(dim)], inputs(shard(dim), whole, whole)) for dim in range(last)]


def _linear_backward(x: Any, grad: Any, weight: Any, output_mask: Any) -> Rules:
    partial, replicate, shard = _placements()
    last = x.ndim - 1
    whole, part = replicate(), partial()
    rules = [
        ([whole, whole, whole], [whole, whole, whole, None]),
        ([part, shard(0), shard(0)], [whole, shard(last), shard(0), None]),
        ([shard(last), shard(1), whole], [shard(last), whole, shard(1), None]),
        ([part, part, part], [whole, part, whole, None]),
    ]
    rules += [([shard(dim), part, part], [shard(dim), shard(dim), whole, None]) for dim in range(last)]
    return [
        ([p if wanted else None for p, wanted in zip(out, output_mask, strict=True)], given) for out, given in rules
    ]


def _attention(query: Any, key: Any, value: Any, bias: Any = None, *rest: Any, **scale: Any) -> Rules:
    _, replicate, shard = _placements()
    rules = []
    for place in (replicate(), shard(0), shard(1)):
        # Two lengths are numbers; offsets, seeds and the debug mask hold nothing.
        results = [place, place, replicate(), replicate(), None, None, replicate(), replicate(), replicate()]
        rules.append((results, [place, place, place, _bias(bias, place), *[None] * len(rest)]))
    return rules


def _attention_backward(
    grad: Any, query: Any, key: Any, value: Any, bias: Any, mask: Any, out: Any, sums: Any, *rest: Any, **scale: Any
) -> Rules:
    partial, replicate, shard = _placements()
    rules = []
    for place in (replicate(), shard(0), shard(1)):
        placed = _bias(bias, place)
        # A bias that all heads or rows share gets a part of its gradient on each rank.
        bias_grad = None if bias is None else (placed if placed == place else partial())
        others = [replicate() if _is_tensor(value) else None for value in rest]
        given = [place, place, place, place, placed, None, place, place, *others]
        rules.append(([place, place, place, bias_grad], given))
    return rules


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "tensor_meta")


def _bias(bias: Any, place: Any) -> Any:
    """Give the place of a bias, which has one row or one head where it is the same for all."""
    _, replicate, _ = _placements()
    if not _is_tensor(bias):
        return None
    return place if place.is_shard() and bias.shape[place.dim] > 1 else replicate()
