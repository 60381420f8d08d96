"""The atoms of Python's own tree: what a rule's `gate` asks for before libcst parses anything.

`name`       a name, attribute, keyword, imported name or short text; docstrings are too long to be one
`name()`     a call of it, but for `super().name()`
`.name`      the attribute without a call, as in `partial(model.generate)`
`a.name`     the attribute of a name; `a:name` what `from a import name` imports
`name=True`  a keyword, dict entry, default or assignment with a constant; the value as `repr` has it
`name=CONST` the same with a name in capitals
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

# A text that is longer is no setting.
_SHORT = 40


def atoms(tree: ast.Module) -> Iterator[str]:
    """Give the atoms of the tree, some more than once."""
    called: set[int] = set()
    for node in ast.walk(tree):
        kind = type(node)
        if kind is ast.Attribute:
            yield from _attribute(node, called)
        elif kind in _GIVERS:
            yield from _GIVERS[kind](node, called)


def _attribute(node: Any, called: set[int]) -> Iterator[str]:
    yield node.attr
    if isinstance(node.value, ast.Name):
        yield f"{node.value.id}.{node.attr}"
    if id(node) not in called:
        yield f".{node.attr}"


def _name(node: Any, called: set[int]) -> Iterator[str]:
    yield node.id


def _call(node: Any, called: set[int]) -> Iterator[str]:
    func = node.func
    if isinstance(func, ast.Name):
        yield f"{func.id}()"
    elif isinstance(func, ast.Attribute):
        # The walk comes to a call before it comes to what is called.
        called.add(id(func))
        inner = func.value
        if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "super"):
            yield f"{func.attr}()"


def _keyword(node: Any, called: set[int]) -> Iterator[str]:
    if node.arg is not None:
        yield node.arg
        yield from _given(node.arg, node.value)


def _constant(node: Any, called: set[int]) -> Iterator[str]:
    if isinstance(node.value, str) and len(node.value) <= _SHORT:
        yield node.value


def _dict(node: Any, called: set[int]) -> Iterator[str]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield from _given(key.value, value)


def _function(node: Any, called: set[int]) -> Iterator[str]:
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    for arg, default in zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True):
        yield from _given(arg.arg, default)
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield from _given(arg.arg, default)


def _assign(node: Any, called: set[int]) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            yield from _given(target.id, node.value)
        elif isinstance(target, ast.Attribute):
            yield from _given(target.attr, node.value)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            yield from _given(str(target.slice.value), node.value)


def _given(name: str, value: ast.expr | None) -> Iterator[str]:
    if isinstance(value, ast.Constant):
        yield f"{name}={value.value!r}"
    elif isinstance(value, ast.Name) and value.id.isupper():
        yield f"{name}=CONST"


def _import(node: Any, called: set[int]) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from (node.module or "").split(".")
        yield from (f"{node.module}:{alias.name}" for alias in node.names)
    for alias in node.names:
        yield from alias.name.split(".")


_GIVERS: dict[type, Callable[[Any, set[int]], Iterator[str]]] = {
    ast.Name: _name,
    ast.Call: _call,
    ast.keyword: _keyword,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Lambda: _function,
    ast.Assign: _assign,
    ast.AnnAssign: _assign,
    ast.Import: _import,
    ast.ImportFrom: _import,
}
