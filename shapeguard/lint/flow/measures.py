"""Lengths that are measured on the rows of a batch: what they are taken from, and where they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.reach import ancestors
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_MAKES_ROOM = frozenset({"pad", "full", "new_full", "new_zeros", "zeros"})
_SIZES = frozenset({"len", "size", "numel"})


def is_over_lengths(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the expression gives lengths of rows: `len(row) for row in rows`, `map(len, rows)`, a name of these."""
    return any(_gives_lengths(each) for each in (node, *(value.node for value in flow.values(node))))


def is_longest(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the node is a `max(...)` over lengths of rows."""
    if not isinstance(node, cst.Call) or method(node) != "max" or not isinstance(node.func, cst.Name):
        return False
    return bool(node.args) and is_over_lengths(flow, node.args[0].value)


def is_alternative(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the name that the node is assigned to gets another value in the other branch of an `if`."""
    names: set[str] = set()
    for parent, child in ancestors(flow.index, node):
        if isinstance(parent, cst.Assign):
            names = {path_of(target.target) for target in parent.targets}
        elif isinstance(parent, (cst.FunctionDef, cst.For, cst.While)):
            return False
        elif isinstance(parent, cst.If) and names:
            other = parent.orelse if child is parent.body else parent.body
            inside = [node for node in flow.index.order if isinstance(node, cst.Assign)]
            found = [each for each in inside if other is not None and flow.is_within(each, other)]
            return any(path_of(target.target) in names for each in found for target in each.targets)
    return False


def pads_again(flow: Flow, function: cst.CSTNode) -> bool:
    """Whether the function also pads to a length of its own, or cuts rows to one before."""
    for call in flow.index.calls:
        makes_room = method(call) in _MAKES_ROOM and flow.is_within(call, function)
        if makes_room and not any(_is_measured(flow, name) for name in _names(flow, call)):
            return True
    return False


def _gives_lengths(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.GeneratorExp, cst.ListComp)):
        return _is_size(node.elt)
    if isinstance(node, cst.Call) and method(node) == "map" and node.args:
        over = node.args[0].value
        return isinstance(over, cst.Name) and over.value == "len"
    return False


def _is_size(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        return method(node) in _SIZES
    # `row.shape[0]`
    inner = node.value if isinstance(node, cst.Subscript) else None
    return isinstance(inner, cst.Attribute) and inner.attr.value == "shape"


def _is_measured(flow: Flow, node: cst.CSTNode) -> bool:
    return any(is_longest(flow, each) for each in (node, *(value.node for value in flow.values(node))))


def _names(flow: Flow, call: cst.Call) -> list[cst.CSTNode]:
    """Give the names and calls in the arguments of a call."""
    inner = [node for node in flow.index.order if isinstance(node, (cst.Name, cst.Call)) and node is not call]
    return [node for node in inner if flow.is_within(node, call) and not flow.is_within(node, call.func)]
