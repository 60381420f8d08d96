"""Which bindings of a name can be the one that a use sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.scope import Binding, Mutation, Scope

if TYPE_CHECKING:
    from shapeguard.lint.flow.index import Index

BLOCKS = (cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module)
LOOPS = (cst.For, cst.While)
_CONDITIONAL = frozenset({*LOOPS, cst.If, cst.ExceptHandler, cst.IfExp})
_LEAVING = (cst.Return, cst.Raise, cst.Continue, cst.Break)


def ancestors(index: Index, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """Give (parent, child) pairs from the node up to the module."""
    parent = index.parent.get(node)
    while parent is not None:
        yield parent, node
        node, parent = parent, index.parent.get(parent)


def runs_with(index: Index, scope: Scope, use: cst.CSTNode) -> bool:
    """Whether the use is evaluated in the course of the scope itself, not in a function called later."""
    inner: Scope | None = index.scope[use]
    while inner is not None and inner is not scope and inner.kind == "comprehension":
        inner = inner.outer
    return inner is scope


def reaching(index: Index, bindings: Sequence[Binding], scope: Scope, use: cst.CSTNode) -> list[Binding]:
    """Give the bindings that may hold at the use, the nearest first."""
    alive = [binding for binding in bindings if not _exclusive(index, binding.node, use)]
    if not runs_with(index, scope, use):
        return list(reversed(alive))
    here = index.order[use]
    found, settled_in_loop = [], False
    loop = _loop(index, use, scope)
    for binding in sorted(alive, key=lambda binding: -binding.order):
        if binding.order > here or _left(index, binding.node, use):
            continue
        found.append(binding)
        if _dominates(index, binding, use):
            settled_in_loop = loop is not None and _inside(index, binding.node, loop)
            break
    if loop is not None and not settled_in_loop:
        found += [b for b in alive if b.order > here and _inside(index, b.node, loop)]
    return found


def before(index: Index, mutations: Sequence[Mutation], scope: Scope, use: cst.CSTNode) -> list[Mutation]:
    """Give the mutations that may have happened when the use is evaluated."""
    alive = [mutation for mutation in mutations if not _exclusive(index, mutation.node, use)]
    if not runs_with(index, scope, use):
        return alive
    here, loop = index.order[use], _loop(index, use, scope)
    return [m for m in alive if m.order < here or (loop is not None and _inside(index, m.node, loop))]


def conditional(index: Index, node: cst.CSTNode, scope: Scope) -> bool:
    """Whether the node stands in a branch or loop of the scope, so that it may not run."""
    for parent, child in ancestors(index, node):
        if parent is scope.node:
            return False
        if type(parent) in _CONDITIONAL and child is not getattr(parent, "test", None):
            return True
    return False


def _loop(index: Index, use: cst.CSTNode, scope: Scope) -> cst.CSTNode | None:
    outermost = None
    for parent, child in ancestors(index, use):
        if parent is scope.node:
            break
        if type(parent) in LOOPS and child is getattr(parent, "body", None):
            outermost = parent
    return outermost


def _inside(index: Index, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
    return any(parent is outer for parent, _ in ancestors(index, node))


def _block(index: Index, node: cst.CSTNode) -> cst.CSTNode:
    # A `with` block always runs, so what it binds counts as bound by the block around it.
    for parent, _ in ancestors(index, node):
        if type(parent) in BLOCKS and not isinstance(index.parent.get(parent), cst.With):
            return parent
    return index.module


def _dominates(index: Index, binding: Binding, use: cst.CSTNode) -> bool:
    if binding.how == "parameter":
        return True
    if isinstance(index.scope[binding.node].node, cst.BaseComp):
        return True
    block = _block(index, binding.node)
    return isinstance(block, cst.Module) or any(parent is block for parent, _ in ancestors(index, use))


def _left(index: Index, node: cst.CSTNode, use: cst.CSTNode) -> bool:
    """Whether the branch of the node ends by leaving, so that the use after it never follows."""
    block = _block(index, node)
    if isinstance(block, cst.Module) or _inside(index, use, block):
        return False
    if not isinstance(index.parent.get(block), (cst.If, cst.Else)):
        return False
    last = block.body[-1] if isinstance(block, cst.IndentedBlock) and block.body else None
    return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _LEAVING)


def _exclusive(index: Index, node: cst.CSTNode, use: cst.CSTNode) -> bool:
    branches = index.branches(node)
    if not branches:
        return False
    return any(
        parent in branches and {branches[parent], child} == {parent.body, parent.orelse}
        for parent, child in index.branches(use).items()
    )
