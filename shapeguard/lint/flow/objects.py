"""Parameters and fields: what a function is called with, what a dataclass or a command line gives by default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow import values
from shapeguard.lint.flow.index import text_of
from shapeguard.lint.flow.reach import ancestors
from shapeguard.lint.flow.scope import Binding, Scope, path_of

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.flow import Flow
    from shapeguard.lint.flow.values import Value

_PARSES = frozenset({"parse_args", "parse_known_args", "parse_intermixed_args"})
_TO_DATACLASSES = frozenset({"parse_args_into_dataclasses", "parse_dict", "parse_json_file", "parse_yaml_file"})


def parameter(flow: Flow, binding: Binding) -> Iterator[Value]:
    """Give the default of a parameter and what the calls in the file pass; callers elsewhere stay unknown."""
    param = binding.node
    assert isinstance(param, cst.Param)
    if param.star == "**":
        yield values.Value("dict", param)
        return
    if param.star == "*":
        yield values.Value("sequence", param)
        return
    yield values.Value("parameter", param)
    if param.default is not None:
        yield from flow.values(_inside_option(param.default))
    for argument in (*_option_defaults(flow, param), *passed(flow, param)):
        yield from flow.values(argument)


def _inside_option(default: cst.BaseExpression) -> cst.BaseExpression:
    """Give what `typer.Option("auto", …)` stands for."""
    if isinstance(default, cst.Call) and values.method(default) in ("Option", "Argument") and default.args:
        return default.args[0].value
    return default


def _option_defaults(flow: Flow, param: cst.Param) -> Iterator[cst.BaseExpression]:
    """Give the default of the parameter in a `@click.option("--name", default=…)` of its function."""
    function = definition(flow, param)
    for decorator in function.decorators if isinstance(function, cst.FunctionDef) else ():
        call = decorator.decorator
        if isinstance(call, cst.Call) and values.method(call) == "option" and _destination(call) == param.name.value:
            yield from (a.value for a in call.args if a.keyword is not None and a.keyword.value == "default")


def passed(flow: Flow, param: cst.Param) -> list[cst.BaseExpression]:
    """Give what the calls in the file pass for the parameter."""
    function = definition(flow, param)
    return [arg for call in flow.sites_of(function) for arg in passed_at(flow, call, function, param)]


def passed_at(flow: Flow, call: Invocation, function: cst.CSTNode, param: cst.Param) -> list[cst.BaseExpression]:
    """Give what one call passes for the parameter."""
    return call.argument(param.name.value, _position(function, param))


def definition(flow: Flow, param: cst.CSTNode) -> cst.CSTNode:
    """Give the function that the parameter belongs to."""
    for parent, _ in ancestors(flow.index, param):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return parent
    return param


def owner(flow: Flow, function: cst.CSTNode) -> cst.ClassDef | None:
    """Give the class that the function is a method of."""
    scope = flow.index.scope.get(function)
    return scope.node if scope is not None and isinstance(scope.node, cst.ClassDef) else None


def is_method(function: cst.CSTNode, of: cst.ClassDef | None) -> bool:
    """Whether calls leave out the first parameter."""
    if of is None or not isinstance(function, cst.FunctionDef):
        return False
    return not any(path_of(decorator.decorator) == "staticmethod" for decorator in function.decorators)


def _position(function: cst.CSTNode, param: cst.Param) -> int | None:
    if not isinstance(function, (cst.FunctionDef, cst.Lambda)):
        return None
    params = [*function.params.posonly_params, *function.params.params]
    names = [each.name.value for each in params]
    if param.name.value not in names:
        return None
    skipped = 1 if names and names[0] in ("self", "cls") else 0
    position = names.index(param.name.value) - skipped
    return position if position >= 0 else None


def field(flow: Flow, value: Value, name: str) -> list[Value] | None:
    """Give what `value.name` may be, None where that cannot be seen."""
    if value.kind == "class" and isinstance(value.node, cst.ClassDef):
        return _class_field(flow, value.node, name, None)
    if isinstance(value.node, cst.Call) and value.kind in ("call", "element"):
        parsed = values.method(value.node)
        if parsed in _PARSES:
            return _option(flow, name)
        if parsed in _TO_DATACLASSES:
            return _parsed_field(flow, value, name)
    return _instance_field(flow, value, name)


def _instance_field(flow: Flow, value: Value, name: str) -> list[Value] | None:
    """Give a field of an object that a class of the file makes, or that a parameter is annotated with."""
    made: cst.Call | None = None
    maker: cst.CSTNode | None = None
    if value.kind == "call" and isinstance(value.node, cst.Call):
        maker = (made := value.node).func
    elif isinstance(value.node, cst.Param) and value.node.annotation is not None:
        maker = value.node.annotation.annotation
    for found in flow.values(maker) if isinstance(maker, (cst.Name, cst.Attribute)) else []:
        if isinstance(found.node, cst.ClassDef):
            return _class_field(flow, found.node, name, made)
    return None


def _class_field(flow: Flow, owner: cst.ClassDef, name: str, made: cst.Call | None) -> list[Value] | None:
    scope = flow.index.inner[owner]
    bindings = flow.attributes(scope).bindings.get(f"self.{name}")
    if not bindings:
        return None
    if made is not None and name in scope.bindings:
        given = [arg.value for arg in made.args if arg.keyword is not None and arg.keyword.value == name]
        if given:
            return list(flow.values(given[0]))
    return [found for binding in bindings for found in default(flow, binding)]


def default(flow: Flow, binding: Binding) -> list[Value]:
    """Give what a class body assigns, through `field(default=…)`."""
    call = binding.value if binding.how == "assign" else None
    if isinstance(call, cst.Call) and values.method(call) in ("field", "Field"):
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "default":
                return list(flow.values(arg.value))
        return [values.Value("unknown", binding.node)]
    return list(values.bound(flow, binding))


def _option(flow: Flow, name: str) -> list[Value] | None:
    """Give the default of the command line's option."""
    found = [values.Value("unknown", flow.index.module)]
    known = False
    for call in flow.index.calls:
        if values.method(call) == "add_argument" and _destination(call) == name:
            known = True
            for arg in call.args:
                if arg.keyword is not None and arg.keyword.value == "default":
                    found += flow.values(arg.value)
    return found if known else None


def _destination(call: cst.Call) -> str:
    texts = [text_of(arg.value) or "" for arg in call.args if arg.keyword is None]
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "dest":
            return text_of(arg.value) or ""
    long = [text for text in texts if text.startswith("--")] or texts
    return long[0].lstrip("-").replace("-", "_") if long else ""


def _parsed_field(flow: Flow, value: Value, name: str) -> list[Value] | None:
    """Give a field's default where `HfArgumentParser` made the object."""
    assert isinstance(value.node, cst.Call)
    for made in parsed_classes(flow, value.node):
        for found in flow.values(made):
            if isinstance(found.node, cst.ClassDef):
                fields = _class_field(flow, found.node, name, None)
                if fields is not None:
                    return [*fields, values.Value("unknown", value.node)]
    return None


def parsed_classes(flow: Flow, call: cst.Call) -> list[cst.BaseExpression]:
    """Give the classes of the `HfArgumentParser` whose method is called."""
    if not isinstance(call.func, cst.Attribute):
        return []
    for value in flow.values(call.func.value):
        if isinstance(value.node, cst.Call) and values.method(value.node) == "HfArgumentParser" and value.node.args:
            first = value.node.args[0].value
            return [e.value for e in first.elements] if isinstance(first, (cst.Tuple, cst.List)) else [first]
    return []


def attributes(flow: Flow, owner: Scope) -> Scope:
    """Give the scope that holds what a class body and its methods assign, all under `self.…`."""
    merged = Scope(owner.node, "class", owner.outer)
    for inner in flow.index.inner.values():
        if inner.owner() is not owner:
            continue
        for path, found in inner.bindings.items():
            if path.startswith(("self.", "cls.")):
                merged.bindings.setdefault("self." + path.split(".", 1)[1], []).extend(found)
            elif inner is owner:
                merged.bindings.setdefault(f"self.{path}", []).extend(found)
        for path, changes in inner.mutations.items():
            if path.startswith("self."):
                merged.mutations.setdefault(path, []).extend(changes)
    return merged
