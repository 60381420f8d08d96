"""Reads of a tensor's value by Python inside a graph: conditions, and conversions to a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow import graphs
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_REDUCES = frozenset({"any", "all", "sum", "mean", "max", "min", "norm", "argmax", "argmin", "amax", "amin", "prod"})
_ASIDE = (cst.Is, cst.IsNot, cst.In, cst.NotIn)


def conditions(flow: Flow) -> Iterator[cst.CSTNode]:
    """Give the conditions of compiled code that ask for the value of a tensor."""
    for node in flow.index.order:
        if isinstance(node, (cst.If, cst.While, cst.IfExp, cst.Assert)) and graphs.is_compiled(flow, node):
            yield from (part for part in _parts(node.test) if is_value(flow, part))


def _parts(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Give what a condition asks one after the other."""
    if isinstance(test, cst.BooleanOperation):
        yield from _parts(test.left)
        yield from _parts(test.right)
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _parts(test.expression)
    else:
        yield test


def is_value(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether Python must read a tensor to know what the expression is."""
    if isinstance(node, cst.Comparison):
        target = node.comparisons[0]
        if isinstance(target.operator, _ASIDE):
            return False
        return is_value(flow, node.left) or is_value(flow, target.comparator)
    if isinstance(node, cst.Call) and method(node) in _REDUCES and isinstance(node.func, cst.Attribute):
        return _is_argument(flow, node.func.value) or graphs.is_tensor(flow, node)
    return graphs.is_tensor(flow, node) or graphs.is_mask(flow, node)


def _is_argument(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the expression is made of an argument: what goes into a graph and is reduced is a tensor."""
    if isinstance(node, cst.Comparison):
        return _is_argument(flow, node.left)
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and _is_argument(flow, node.func.value)
    return any(v.kind == "parameter" for v in flow.values(node)) and isinstance(node, (cst.Name, cst.Subscript))
