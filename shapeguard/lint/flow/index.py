"""The one walk over the tree: parents, order, scopes, bindings, mutations, calls.

It does not use libcst's visitors: they rebuild the tree as they go and cost ten times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, cast

import libcst as cst

from shapeguard.lint.flow.scope import Binding, How, Mutation, Scope, path_of

_IGNORED = frozenset(
    [
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "comma",
        "dot",
        "semicolon",
        "equal",
        "operator",
        "asynchronous",
        "leading_lines",
        "lines_after_decorators",
        "header",
        "footer",
        "indent",
    ]
)
_MUTATORS = {
    "update": "update",
    "setdefault": "default",
    "pop": "remove",
    "clear": "other",
    "to": "moved",
    "cuda": "moved",
}
_children: dict[type, tuple[str, ...]] = {}
_LEAVES = frozenset({str, bool, int, type(None), cst.MaybeSentinel})


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Give the nodes below that hold code, in the order of the source but for comprehensions."""
    kind = type(node)
    if kind not in _children:
        names = (f.name for f in fields(kind))
        _children[kind] = tuple(n for n in names if n not in _IGNORED and not n.startswith(("whitespace", "trailing")))
    for name in _children[kind]:
        value: Any = getattr(node, name)
        made = type(value)
        # Asked by type: libcst's classes are abstract, and `isinstance` of one costs ten times as much.
        if made is list or made is tuple:
            yield from value
        elif made not in _LEAVES:
            yield value


class Index:
    """What one walk over a module finds out."""

    def __init__(self, module: cst.Module) -> None:
        self.module = module
        self.parent: dict[cst.CSTNode, cst.CSTNode] = {}
        self.order: dict[cst.CSTNode, int] = {}
        self.scope: dict[cst.CSTNode, Scope] = {}
        """The scope that each node is evaluated in."""
        self.inner: dict[cst.CSTNode, Scope] = {}
        """The scope that a definition opens."""
        self.calls: list[cst.Call] = []
        self.returns: dict[Scope, list[cst.BaseExpression]] = {}
        self.stars: list[str] = []
        """Modules of `from … import *`."""
        self.top = Scope(module, "module", None)
        self._special: dict[type, Callable[[Any, Scope], None]] = {
            cst.FunctionDef: self._function,
            cst.Lambda: self._lambda,
            cst.ClassDef: self._class,
            cst.Call: self._call,
            cst.Assign: self._assign,
            cst.AnnAssign: self._annotated,
            cst.AugAssign: self._augmented,
            cst.NamedExpr: self._walrus,
            cst.For: self._for,
            cst.With: self._with,
            cst.Import: self._import,
            cst.ImportFrom: self._import_from,
            cst.Global: self._global,
            cst.Nonlocal: self._global,
            cst.Return: self._return,
            cst.ExceptHandler: self._except,
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.DictComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
        }
        self.inner[module] = self.top
        self._branches: dict[cst.CSTNode, dict[cst.If, cst.CSTNode]] = {}
        self._enter(module, None, self.top)

    def branches(self, node: cst.CSTNode) -> dict[cst.If, cst.CSTNode]:
        """Give the `if` statements around the node, each with the part that the node stands in."""
        found = self._branches.get(node)
        if found is None:
            parent = self.parent.get(node)
            outer = self.branches(parent) if parent is not None else {}
            is_if = type(parent) is cst.If
            found = self._branches[node] = {**outer, cast(cst.If, parent): node} if is_if else outer
        return found

    def _enter(self, node: cst.CSTNode, parent: cst.CSTNode | None, scope: Scope) -> None:
        if parent is not None:
            self.parent[node] = parent
        self.order[node] = len(self.order)
        self.scope[node] = scope
        special = self._special.get(type(node))
        if special is not None:
            special(node, scope)
        else:
            self._below(node, scope)

    def _below(self, node: cst.CSTNode, scope: Scope) -> None:
        for child in children(node):
            self._enter(child, node, scope)

    def _function(self, node: cst.FunctionDef, scope: Scope) -> None:
        scope.bind(node.name.value, Binding("def", node, len(self.order)))
        inner = self.inner[node] = Scope(node, "function", scope)
        for decorator in node.decorators:
            self._enter(decorator, node, scope)
        self._parameters(node.params, node, inner)
        self._enter(node.body, node, inner)

    def _lambda(self, node: cst.Lambda, scope: Scope) -> None:
        inner = self.inner[node] = Scope(node, "function", scope)
        self._parameters(node.params, node, inner)
        self._enter(node.body, node, inner)
        self.returns[inner] = [node.body]

    def _parameters(self, params: cst.Parameters, node: cst.CSTNode, inner: Scope) -> None:
        assert inner.outer is not None
        self._enter(params, node, inner.outer)
        stars = [star for star in (params.star_arg, params.star_kwarg) if isinstance(star, cst.Param)]
        for param in (*params.posonly_params, *params.params, *params.kwonly_params, *stars):
            inner.bind(param.name.value, Binding("parameter", param, len(self.order), param.default))

    def _class(self, node: cst.ClassDef, scope: Scope) -> None:
        scope.bind(node.name.value, Binding("class", node, len(self.order)))
        inner = self.inner[node] = Scope(node, "class", scope)
        for part in (*node.decorators, *node.bases, *node.keywords):
            self._enter(part, node, scope)
        self._enter(node.body, node, inner)

    def _call(self, node: cst.Call, scope: Scope) -> None:
        self.calls.append(node)
        self._below(node, scope)
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in _MUTATORS:
            return
        if _MUTATORS[node.func.attr.value] == "moved" and not isinstance(self.parent.get(node), cst.Expr):
            return
        if path := path_of(node.func.value):
            how = _MUTATORS[node.func.attr.value]
            key = text_of(node.args[0].value) if node.args else None
            value = node.args[1].value if how == "default" and len(node.args) > 1 else None
            mutation = Mutation(how, node, len(self.order), key, value, tuple(node.args))  # type: ignore[arg-type]
            scope.mutate(path, mutation)

    def _assign(self, node: cst.Assign, scope: Scope) -> None:
        self._enter(node.value, node, scope)
        for target in node.targets:
            self._enter(target, node, scope)
            self._bind(target.target, node.value, scope)

    def _annotated(self, node: cst.AnnAssign, scope: Scope) -> None:
        self._below(node, scope)
        if node.value is not None or scope.kind == "class":
            self._bind(node.target, node.value, scope)

    def _augmented(self, node: cst.AugAssign, scope: Scope) -> None:
        self._below(node, scope)
        if not (path := path_of(node.target)):
            return
        if isinstance(node.operator, cst.BitOrAssign):
            arg = cst.Arg(node.value, star="**")
            scope.mutate(path, Mutation("update", node, len(self.order), args=(arg,)))
        else:
            scope.bind(path, Binding("augment", node.target, len(self.order), node.value))

    def _walrus(self, node: cst.NamedExpr, scope: Scope) -> None:
        self._below(node, scope)
        while scope.kind == "comprehension" and scope.outer is not None:
            scope = scope.outer
        self._bind(node.target, node.value, scope)

    def _for(self, node: cst.For, scope: Scope) -> None:
        self._enter(node.iter, node, scope)
        self._enter(node.target, node, scope)
        self._bind(node.target, node.iter, scope, how="item")
        self._enter(node.body, node, scope)
        if node.orelse is not None:
            self._enter(node.orelse, node, scope)

    def _with(self, node: cst.With, scope: Scope) -> None:
        for item in node.items:
            self._enter(item, node, scope)
            if item.asname is not None:
                self._bind(item.asname.name, item.item, scope, how="entered")
        self._enter(node.body, node, scope)

    def _comprehension(self, node: cst.BaseComp, scope: Scope) -> None:
        inner = self.inner[node] = Scope(node, "comprehension", scope)
        loop: cst.CompFor | None = node.for_in
        first = True
        while loop is not None:
            self._enter(loop.iter, node, scope if first else inner)
            self._enter(loop.target, node, inner)
            self._bind(loop.target, loop.iter, inner, how="item")
            for condition in loop.ifs:
                self._enter(condition, node, inner)
            loop, first = loop.inner_for_in, False
        for child in children(node):
            if child is not node.for_in:
                self._enter(child, node, inner)

    def _import(self, node: cst.Import, scope: Scope) -> None:
        for alias in node.names:
            full = path_of(alias.name)
            if alias.asname is not None:
                self._named(path_of(alias.asname.name), full, node, scope)
            else:
                self._named(full.split(".")[0], full.split(".")[0], node, scope)

    def _import_from(self, node: cst.ImportFrom, scope: Scope) -> None:
        origin = "." * len(node.relative) + (path_of(node.module) if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            self.stars.append(origin)
            return
        for alias in node.names:
            name = path_of(alias.name)
            local = path_of(alias.asname.name) if alias.asname is not None else name
            self._named(local, f"{origin}.{name}" if origin.strip(".") else origin + name, node, scope)

    def _named(self, local: str, full: str, node: cst.CSTNode, scope: Scope) -> None:
        scope.bind(local, Binding("import", node, len(self.order), name=full))

    def _global(self, node: cst.Global | cst.Nonlocal, scope: Scope) -> None:
        if isinstance(node, cst.Global):
            scope.elsewhere.update(item.name.value for item in node.names)

    def _return(self, node: cst.Return, scope: Scope) -> None:
        self._below(node, scope)
        if node.value is not None:
            self.returns.setdefault(scope, []).append(node.value)

    def _except(self, node: cst.ExceptHandler, scope: Scope) -> None:
        if node.name is not None and isinstance(node.name.name, cst.Name):
            scope.bind(node.name.name.value, Binding("opaque", node, len(self.order)))
        self._below(node, scope)

    def _bind(
        self,
        target: cst.CSTNode,
        value: cst.BaseExpression | None,
        scope: Scope,
        *,
        how: How = "assign",
        index: int = 0,
    ) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target, value, scope, how)
        elif isinstance(target, cst.Subscript):
            if path := path_of(target.value):
                scope.mutate(path, Mutation("set", target, len(self.order), subscript_key(target), value))
        elif path := path_of(target):
            scope.bind(path, Binding(how, target, len(self.order), value, index))

    def _unpack(self, target: cst.Tuple | cst.List, value: cst.BaseExpression | None, scope: Scope, how: How) -> None:
        pairs = value.elements if isinstance(value, (cst.Tuple, cst.List)) and how == "assign" else ()
        starred = any(isinstance(element, cst.StarredElement) for element in (*target.elements, *pairs))
        for i, element in enumerate(target.elements):
            if starred:
                self._bind(element.value, value, scope, how="opaque")
            elif len(pairs) == len(target.elements):
                self._bind(element.value, pairs[i].value, scope)
            else:
                self._bind(element.value, value, scope, how="element" if how == "assign" else how, index=i)


def text_of(node: cst.CSTNode) -> str | None:
    """Give the text of a plain string, None for anything else."""
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def subscript_key(node: cst.Subscript) -> str | None:
    """Give the text in `x["text"]`, None for any other subscript."""
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return text_of(node.slice[0].slice.value)
    return None
