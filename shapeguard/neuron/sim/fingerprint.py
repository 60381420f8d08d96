"""The key of a compiled graph: a digest of the program after AOTAutograd, equal wherever the programs are equal.

In it: operators in order, shapes and dtypes of inputs, every constant (floats by their bits, literal tensors by their
bytes), replica groups of collectives, subgraphs. Not in it: names, source lines, parameter values, device index,
process, time, hash seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from shapeguard.neuron.sim.replicas import replicas_of
from shapeguard.neuron.sim.specs import dtype_name
from shapeguard.neuron.sim.storage import held, unwrap


def text_of(graph: fx.GraphModule) -> str:
    """Give the program as text, one line a node; inputs are numbered in the order of their use."""
    numbers: dict[fx.Node, str] = {}
    return "\n".join(_lines(graph, numbers))


def digest(text: str) -> str:
    """Give 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def sizes_of(tensor: torch.Tensor) -> list[int | str]:
    """Give the shape in plain numbers.

    AOTAutograd leaves one size open even where all are static: that of the host's generator, whose state it saves for
    random operators that the backward runs again.
    """
    return [size if isinstance(size, int) else _hint(size) for size in tensor.shape]


def _hint(size: Any) -> int | str:
    known = size.node.hint
    return str(size) if known is None else int(known)


def _lines(module: fx.GraphModule, numbers: dict[fx.Node, str]) -> Iterable[str]:
    num_inputs = 0
    for node in module.graph.nodes:
        if node.op == "placeholder":
            continue
        for used in node.all_input_nodes:
            if used not in numbers:
                numbers[used] = f"i{num_inputs}"
                num_inputs += 1
                yield f"{numbers[used]} = input {_meta(used)}"
        if node.op == "output":
            yield f"return {_value(node.args[0], numbers)}"
            continue
        numbers[node] = f"n{len(numbers)}"
        if node.op == "get_attr":
            yield f"{numbers[node]} = constant {_attribute(module, node)}"
        else:
            arguments = ", ".join(_value(each, numbers) for each in node.args)
            keywords = "".join(f", {k}={_value(v, numbers)}" for k, v in sorted(node.kwargs.items()))
            yield f"{numbers[node]} = {_target(node)}({arguments}{keywords}) -> {_meta(node)}"


def _target(node: fx.Node) -> str:
    target = node.target
    return target.name() if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _meta(node: fx.Node) -> str:
    return _shape(node.meta.get("val"))


def _shape(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{dtype_name(value.dtype)}{sizes_of(value)}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(_shape(each) for each in value) + ")"
    return type(value).__name__


def _attribute(module: fx.GraphModule, node: fx.Node) -> str:
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    if isinstance(value, fx.GraphModule):
        return "{" + text_of(value) + "}"
    if isinstance(value, torch.Tensor):
        return f"{_shape(value)} {_bytes(value)}"
    return str(type(value).__name__)


def _bytes(tensor: torch.Tensor) -> str:
    if tensor.numel() == 0 or isinstance(tensor, FakeTensor):
        return ""
    # On hardware a tensor of the device has no inner side: its bytes are read back.
    inner = tensor if tensor.is_cpu else unwrap(tensor) if held(tensor) is not None else tensor.cpu()
    if inner.is_meta:
        return ""
    data = inner.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def _value(value: Any, numbers: dict[fx.Node, str]) -> str:
    if isinstance(value, fx.Node):
        return numbers[value]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(each, numbers) for each in value) + "]"
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, str):
        return replicas_of(value) or repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_value(v, numbers)}" for k, v in sorted(value.items())) + "}"
    return replicas_of(value) or str(value)
