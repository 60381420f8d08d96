"""The entries of a dict: a literal, `dict(...)`, merges, and edits before it is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow import objects
from shapeguard.lint.flow.index import text_of
from shapeguard.lint.flow.reach import conditional
from shapeguard.lint.flow.scope import Binding, Mutation
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_ENCODES = frozenset({"apply_chat_template", "encode_plus", "batch_encode_plus", "pad", "__call__"})
_COPIES = frozenset({"copy", "deepcopy", "dict", "OrderedDict"})


@dataclass(slots=True, eq=False)
class Mapping:
    """What a dict holds under plain text keys."""

    entries: dict[str, list[cst.BaseExpression]] = field(default_factory=dict)
    """By key, the expressions that its value may come from."""
    is_complete: bool = False
    """Whether no other key can be in it."""
    is_encoding: bool = False
    """Whether it is what a tokenizer gives: its keys are inputs of a model, never options."""

    def put(self, other: Mapping, *, maybe: bool = False) -> None:
        """Write the other's entries over these, or beside them where that may not happen."""
        for key, values in other.entries.items():
            self.entries[key] = [*self.entries.get(key, []), *values] if maybe else list(values)
        self.is_complete &= other.is_complete


def mapping(flow: Flow, node: cst.CSTNode) -> Mapping:
    """Give the entries of the dict that the expression is."""
    if isinstance(node, cst.Dict):
        return _literal(flow, node)
    if isinstance(node, cst.Call):
        return _call(flow, node)
    if isinstance(node, cst.DictComp):
        return _comprehension(flow, node)
    if isinstance(node, (cst.Name, cst.Attribute)):
        return _named(flow, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return _merged([flow.mapping(node.left), flow.mapping(node.right)])
    if isinstance(node, cst.IfExp):
        branches = [branch for branch in (node.body, node.orelse) if not flow.never_on_neuron(branch)]
        return _either(flow.mapping(branch) for branch in branches)
    if isinstance(node, cst.Param) and node.star == "**":
        return _keywords(flow, node)
    if isinstance(node, cst.Subscript):
        return _either(flow.mapping(v.node) for v in flow.values(node) if v.node is not node)
    if isinstance(node, cst.BooleanOperation):
        return _either([flow.mapping(node.left), flow.mapping(node.right)])
    return Mapping()


def _merged(parts: Iterable[Mapping]) -> Mapping:
    whole = Mapping(is_complete=True)
    for part in parts:
        whole.put(part)
    return whole


def _either(parts: Iterable[Mapping]) -> Mapping:
    whole, known = Mapping(is_complete=True), False
    for part in parts:
        known = True
        whole.put(part, maybe=True)
    whole.is_complete &= known
    return whole


def _literal(flow: Flow, node: cst.Dict) -> Mapping:
    whole = Mapping(is_complete=True)
    for element in node.elements:
        if isinstance(element, cst.StarredDictElement):
            whole.put(flow.mapping(element.value))
        elif isinstance(element, cst.DictElement):
            key = text_of(element.key)
            if key is None:
                only = flow.only(element.key)
                key = only if isinstance(only, str) else None
            whole.put(Mapping({key: [element.value]}, is_complete=True) if key is not None else Mapping())
    return whole


def _arguments(flow: Flow, args: Iterable[cst.Arg]) -> Mapping:
    whole = Mapping(is_complete=True)
    for arg in args:
        if arg.keyword is not None:
            whole.put(Mapping({arg.keyword.value: [arg.value]}, is_complete=True))
        else:
            whole.put(flow.mapping(arg.value))
    return whole


def _call(flow: Flow, node: cst.Call) -> Mapping:
    name = method(node)
    if name == "copy" and not node.args and isinstance(node.func, cst.Attribute):
        return flow.mapping(node.func.value)
    if name == "to" and isinstance(node.func, cst.Attribute):
        return flow.mapping(node.func.value)
    if _is_encoding(flow, node):
        # The keys are those of a model's inputs; no option is ever among them.
        return Mapping(is_complete=True, is_encoding=True)
    if name in _COPIES or name in ("BatchEncoding", "BatchFeature"):
        return _arguments(flow, node.args)
    results: list[cst.BaseExpression] = []
    for value in flow.values(node.func):
        scope = flow.index.inner.get(value.node) if value.kind == "function" else None
        results += flow.index.returns.get(scope, []) if scope is not None else []
    return _either(flow.mapping(result) for result in results)


def _is_encoding(flow: Flow, node: cst.Call) -> bool:
    makers = ("tokenizer", "tokenizer?", "processor", "processor?")
    if any(kind in makers for kind in flow.kinds(node.func)):
        return True
    if not isinstance(node.func, cst.Attribute) or method(node) not in _ENCODES:
        return False
    return any(kind in makers for kind in flow.kinds(node.func.value))


def _comprehension(flow: Flow, node: cst.DictComp) -> Mapping:
    """`{k: f(v) for k, v in d.items()}` has no keys but those of `d`."""
    base = node.for_in.iter
    if isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and base.func.attr.value == "items":
        inner = flow.mapping(base.func.value)
        return Mapping(is_complete=inner.is_complete, is_encoding=inner.is_encoding)
    return Mapping()


def _named(flow: Flow, node: cst.Name | cst.Attribute) -> Mapping:
    bindings = flow.bindings(node)
    parts = [_bound(flow, binding) for binding in bindings]
    whole = _either(parts)
    whole.is_encoding = bool(parts) and all(part.is_encoding for part in parts)
    if not bindings:
        whole = _either(flow.mapping(v.node) for v in flow.values(node) if v.kind == "dict" and v.node is not node)
    last = max((binding.order for binding in bindings), default=0)
    for mutation in flow.mutations(node):
        if mutation.order > last or len(bindings) != 1:
            _apply(flow, whole, mutation)
    return whole


def _bound(flow: Flow, binding: Binding) -> Mapping:
    if isinstance(binding.node, cst.Param):
        if binding.node.star == "**":
            return flow.mapping(binding.node)
        seen = [*objects.passed(flow, binding.node), *([binding.value] if binding.value is not None else [])]
        found = _either(flow.mapping(argument) for argument in seen)
        found.is_complete = False
        return found
    if binding.how in ("assign", "entered") and binding.value is not None:
        return flow.mapping(binding.value)
    return Mapping()


def _apply(flow: Flow, whole: Mapping, mutation: Mutation) -> None:
    maybe = conditional(flow.index, mutation.node, flow.index.scope[mutation.node])
    if mutation.how in ("set", "default"):
        if mutation.key is None or mutation.value is None:
            whole.is_complete &= whole.is_encoding
        elif mutation.how == "set" or mutation.key not in whole.entries:
            whole.put(Mapping({mutation.key: [mutation.value]}, is_complete=True), maybe=maybe)
    elif mutation.how == "update":
        whole.put(_arguments(flow, mutation.args), maybe=maybe)
    elif mutation.how == "remove" and mutation.key is not None and not maybe:
        whole.entries.pop(mutation.key, None)


def _keywords(flow: Flow, param: cst.Param) -> Mapping:
    """Give what the calls in the file pass into `**kwargs`."""
    function = objects.definition(flow, param)
    assert isinstance(function, (cst.FunctionDef, cst.Lambda))
    params = (*function.params.params, *function.params.kwonly_params)
    own = {each.name.value for each in params}
    parts = []
    for call in flow.sites_of(function):
        part = _arguments(flow, [arg for arg in call.args if arg.keyword is not None or arg.star == "**"])
        part.entries = {key: values for key, values in part.entries.items() if key not in own}
        parts.append(part)
    return _either(parts)
