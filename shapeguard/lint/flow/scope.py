"""The names of a file: which scope binds them, where, and to what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import libcst as cst

How = Literal["assign", "element", "item", "entered", "augment", "import", "def", "class", "parameter", "opaque"]


@dataclass(slots=True, eq=False)
class Binding:
    """One place that gives a name a value."""

    how: How
    node: cst.CSTNode
    """The target, parameter, definition or import."""
    order: int
    """When it takes effect, in the order of the walk."""
    value: cst.BaseExpression | None = None
    """The expression that the value comes from."""
    index: int = 0
    """Which element of the value, where `how` is "element"."""
    name: str = ""
    """The qualified name, where `how` is "import"."""


@dataclass(slots=True, eq=False)
class Mutation:
    """One place that changes an object in place: `d["k"] = v`, `d.update(...)`, `d |= ...`."""

    how: Literal["set", "update", "default", "remove", "moved", "other"]
    node: cst.CSTNode
    order: int
    key: str | None = None
    """The key of "set", "default" and "remove"; None where it is not a plain text."""
    value: cst.BaseExpression | None = None
    args: tuple[cst.Arg, ...] = ()


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function, lambda or comprehension; paths like "config.name" are bound like names."""

    node: cst.CSTNode
    kind: Literal["module", "class", "function", "comprehension"]
    outer: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    mutations: dict[str, list[Mutation]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    """Names that `global` or `nonlocal` hands to an outer scope."""

    def bind(self, path: str, binding: Binding) -> None:
        """Note that the path gets a value here, or in the scope that `global` names."""
        scope: Scope = self
        if path.split(".")[0] in self.elsewhere:
            scope = self.module()
        scope.bindings.setdefault(path, []).append(binding)

    def mutate(self, path: str, mutation: Mutation) -> None:
        """Note that the object under the path is changed here."""
        self.mutations.setdefault(path, []).append(mutation)

    def module(self) -> Scope:
        """Give the outermost scope."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def owner(self) -> Scope | None:
        """Give the class whose method this scope is, or lies in."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "class":
            scope = scope.outer
        return scope

    def function(self) -> Scope | None:
        """Give the innermost function, through comprehensions."""
        scope: Scope | None = self
        while scope is not None and scope.kind == "comprehension":
            scope = scope.outer
        return scope if scope is not None and scope.kind == "function" else None


def path_of(node: cst.CSTNode) -> str:
    """Give `a.b.c` for a chain of names, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    return ".".join([node.value, *reversed(parts)])
