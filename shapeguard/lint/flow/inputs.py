"""Inputs of a plain forward that are made on the CPU, and so must follow a model that leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.kinds import SAME
from shapeguard.lint.flow.moves import Trace
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_MAKERS = frozenset(
    f"torch.{name}"
    for name in "tensor as_tensor LongTensor from_numpy arange full zeros ones rand randn randint".split()
)


def made_on_cpu(flow: Flow, loaded: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, str]]:
    """Give the inputs of forwards of the loaded model that stay behind on the CPU, each with the model's name."""
    trace = Trace(flow)
    # A batch moves in place, and that of a `generate()` has to stay.
    prompts = {node for generation in flow.generations for _, node in generation.trace.producers}
    for call in flow.index.calls:
        path = path_of(call.func)
        if not path or not any(_loaded(value.node) is loaded for value in flow.values(call.func)):
            continue
        for arg in call.args:
            values = flow.values(arg.value)
            if values and all(v.node not in prompts and _is_on_cpu(flow, trace, v.node) for v in values):
                yield arg.value, path


def _loaded(node: cst.CSTNode) -> cst.CSTNode:
    """Look through `.eval()` and the like."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and method(node) in SAME:
        node = node.func.value
    return node


def _is_on_cpu(flow: Flow, trace: Trace, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call) or any(arg.keyword and arg.keyword.value == "device" for arg in node.args):
        return False
    return bool(flow.names(node.func) & _MAKERS) or trace.is_batch(node)
