"""What an expression may be: followed through names, attributes, helpers and defaults to where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import libcst as cst

from shapeguard.lint.flow import objects
from shapeguard.lint.flow.index import subscript_key
from shapeguard.lint.flow.scope import Binding, path_of

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

Kind = Literal[
    "constant", "global", "call", "dict", "sequence", "function", "class", "partial", "parameter", "item", "element",
    "attribute", "entry", "field", "unknown", "other",
]  # fmt: skip

_WORDS: dict[str, object] = {"True": True, "False": False, "None": None}
_SEQUENCES = (cst.List, cst.Tuple, cst.Set, cst.ListComp, cst.SetComp, cst.GeneratorExp)
_GETTERS = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault", "getattr"})


@dataclass(frozen=True, slots=True)
class Value:
    """One thing that an expression may be."""

    kind: Kind
    node: cst.CSTNode
    """Where it comes from: the literal, the call, the parameter, the loop's iterable."""
    constant: object = None
    name: str = ""
    """The qualified name, where `kind` is "global"."""
    index: int = 0
    """Which element, where `kind` is "element"."""


def evaluate(flow: Flow, node: cst.CSTNode) -> Iterable[Value]:
    """Give what the expression may be."""
    constant = literal(node)
    if constant is not ...:
        return [Value("constant", node, constant)]
    if isinstance(node, cst.Name):
        return _name(flow, node)
    if isinstance(node, cst.Attribute):
        return _attribute(flow, node)
    if isinstance(node, cst.Call):
        return _call(flow, node)
    if isinstance(node, cst.Subscript):
        return _subscript(flow, node)
    return _other(flow, node)


def literal(node: cst.CSTNode) -> object:
    """Give the constant that is written there, or Ellipsis."""
    if isinstance(node, cst.Name):
        return _WORDS.get(node.value, ...)
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        value = node.evaluated_value
        return ... if value is None else value
    if isinstance(node, (cst.Integer, cst.Float)):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        number = literal(node.expression)
        return -number if isinstance(number, (int, float)) else ...
    return ...


def _other(flow: Flow, node: cst.CSTNode) -> Iterable[Value]:
    if isinstance(node, cst.IfExp):
        branches = (node.body, node.orelse)
        return [v for branch in branches if not flow.never_on_neuron(branch) for v in flow.values(branch)]
    if isinstance(node, cst.BooleanOperation):
        return [*flow.values(node.left), *flow.values(node.right)]
    if isinstance(node, cst.Await):
        return flow.values(node.expression)
    if isinstance(node, cst.NamedExpr):
        return flow.values(node.value)
    if isinstance(node, cst.Lambda):
        return [Value("function", node)]
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return [Value("dict", node)]
    if isinstance(node, (cst.Dict, cst.DictComp)):
        return [Value("dict", node)]
    return [Value("sequence" if isinstance(node, _SEQUENCES) else "other", node)]


def _name(flow: Flow, node: cst.Name) -> Iterator[Value]:
    bindings = flow.bindings(node)
    for binding in bindings:
        yield from bound(flow, binding)
    if bindings:
        return
    if flow.is_bound(node):
        yield Value("unknown", node)
    else:
        star = flow.index.stars[0] + "." if flow.index.stars and node.value[:1].isupper() else ""
        yield Value("global", node, name=star + node.value)


def bound(flow: Flow, binding: Binding) -> Iterable[Value]:
    """Give what a binding puts under its name."""
    if binding.how == "import":
        return [Value("global", binding.node, name=binding.name)]
    if binding.how in ("def", "class"):
        return [Value("function" if binding.how == "def" else "class", binding.node)]
    if binding.how == "parameter":
        return objects.parameter(flow, binding)
    if binding.value is None or binding.how in ("augment", "opaque"):
        return [Value("unknown", binding.node)]
    if binding.how in ("assign", "entered"):
        return flow.values(binding.value)
    if binding.how == "element":
        return element(flow, binding.value, binding.index)
    return [Value("item", binding.value, index=binding.index)]


def element(flow: Flow, whole: cst.CSTNode, index: int) -> Iterator[Value]:
    """Give what `a` may be in `a, b = whole`."""
    for value in flow.values(whole):
        node = value.node
        if isinstance(node, (cst.Tuple, cst.List)) and index < len(node.elements):
            yield from flow.values(node.elements[index].value)
        elif isinstance(node, cst.Call) and method(node) == "prepare" and index < len(node.args) > 1:
            # `accelerator.prepare` gives its arguments back in their order.
            yield from flow.values(node.args[index].value)
        else:
            yield Value("element", node, index=index)


def method(node: cst.CSTNode) -> str:
    """Give `name` for `x.name(...)` and `name(...)`."""
    if not isinstance(node, cst.Call):
        return ""
    return path_of(cst.Name("_") if isinstance(node.func, cst.Call) else node.func).split(".")[-1] or (
        node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    )


def _attribute(flow: Flow, node: cst.Attribute) -> Iterator[Value]:
    bindings = flow.bindings(node)
    for binding in bindings:
        yield from objects.default(flow, binding)
        if flow.index.scope[binding.node].kind == "class" and binding.how == "assign":
            # The constructor may say otherwise than the class.
            yield Value("field", binding.node)
    if bindings:
        return
    for value in flow.values(node.value):
        if value.kind == "global":
            yield Value("global", node, name=f"{value.name}.{node.attr.value}")
        else:
            found = objects.field(flow, value, node.attr.value)
            yield from found if found is not None else [Value("attribute", node)]


def _call(flow: Flow, node: cst.Call) -> Iterator[Value]:
    names = flow.names(node.func)
    if "functools.partial" in names:
        yield Value("partial", node)
        return
    if names & _GETTERS or method(node) in ("get", "pop"):
        yield from _getter(flow, node)
        return
    known = False
    for value in flow.values(node.func):
        scope = flow.index.inner.get(value.node) if value.kind == "function" else None
        if scope is not None and not _is_async_generator(value.node):
            for result in flow.index.returns.get(scope, []):
                known = True
                yield from flow.values(result)
    if not known:
        yield Value("call", node)


def _is_async_generator(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef) and any(
        "contextmanager" in path_of(decorator.decorator) for decorator in node.decorators
    )


def _getter(flow: Flow, node: cst.Call) -> Iterator[Value]:
    """`d.get("key", default)`: the entry, or else the default."""
    args = [arg for arg in node.args if not arg.star]
    key = literal(args[0].value) if args else ...
    entries: list[cst.BaseExpression] = []
    if isinstance(node.func, cst.Attribute) and isinstance(key, str):
        entries = flow.mapping(node.func.value).entries.get(key, [])
    for entry in entries:
        yield from flow.values(entry)
    if not entries:
        yield Value("call", node)
        if len(args) > 1:
            yield from flow.values(args[-1].value)


def _subscript(flow: Flow, node: cst.Subscript) -> Iterator[Value]:
    key = subscript_key(node)
    entries = flow.mapping(node.value).entries.get(key, []) if key is not None else []
    for entry in entries:
        yield from flow.values(entry)
    if not entries:
        yield Value("entry", node)
