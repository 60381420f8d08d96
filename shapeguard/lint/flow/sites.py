"""Which calls of the file reach which of its functions and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.flow import Flow


def find(flow: Flow) -> dict[cst.CSTNode, list[Invocation]]:
    """Give the calls of each function and class, by its definition."""
    found: dict[cst.CSTNode, list[Invocation]] = {}
    for call in flow.calls:
        for value in flow.values(call.func):
            if value.kind in ("function", "class"):
                found.setdefault(value.node, []).append(call)
            elif value.kind == "call" and isinstance(value.node, cst.Call):
                for method in _called(flow, value.node):
                    found.setdefault(method, []).append(call)
    return found


def _called(flow: Flow, made: cst.Call) -> list[cst.CSTNode]:
    """Give `__call__` of the local class that the object is made of."""
    methods: list[cst.CSTNode] = []
    for value in flow.values(made.func):
        scope = flow.index.inner.get(value.node) if value.kind == "class" else None
        for binding in scope.bindings.get("__call__", []) if scope is not None else []:
            methods.append(binding.node)
    return methods
