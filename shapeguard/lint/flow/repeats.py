"""Whether a place runs more than once, with other values each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow import objects
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_RECEIVES = frozenset(
    {
        "get",
        "get_nowait",
        "pop",
        "popleft",
        "recv",
        "recv_json",
        "receive",
        "receive_json",
        "receive_text",
        "input",
        "next",
    }
)
_ENDLESS = (cst.For, cst.While)


def in_loop(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the node stands in a loop or comprehension of its own function."""
    for parent, child in flow.ancestors(node):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return False
        if isinstance(parent, _ENDLESS) and child is parent.body:
            return True
        if isinstance(parent, cst.BaseComp) and child is not parent.for_in.iter:
            return True
    return False


def repeated(flow: Flow, node: cst.CSTNode, seen: frozenset[cst.CSTNode] = frozenset()) -> bool:
    """Whether the node runs more than once: in a loop, or in a function that is called so or by others."""
    if in_loop(flow, node):
        return True
    function = enclosing(flow, node)
    if function is None or function in seen:
        return False
    sites = flow.sites_of(function)
    if not sites:
        return _takes_values(function)
    return len(sites) > 1 or repeated(flow, sites[0].node, seen | {function})


def enclosing(flow: Flow, node: cst.CSTNode) -> cst.CSTNode | None:
    """Give the innermost function around the node."""
    for parent, child in flow.ancestors(node):
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)) and child is parent.body:
            return parent
    return None


def _takes_values(function: cst.CSTNode) -> bool:
    """Whether a function without calls in the file is made to be called with different values."""
    if isinstance(function, cst.FunctionDef) and function.name.value in ("main", "__init__", "setUp", "run_demo"):
        return False
    if isinstance(function, cst.FunctionDef) and function.name.value.startswith("test_"):
        return False
    assert isinstance(function, (cst.FunctionDef, cst.Lambda))
    params = [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]
    return any(param.name.value not in ("self", "cls", "args", "config", "cfg") for param in params)


def varies(flow: Flow, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether the expression depends on a loop's item, a counter, or an argument with different values."""
    if node not in flow.varying:
        # What leads back to itself adds nothing of its own.
        flow.varying[node] = False
        flow.varying[node] = _varies(flow, node, depth)
    return flow.varying[node]


def _varies(flow: Flow, node: cst.CSTNode, depth: int) -> bool:
    if isinstance(node, (cst.Name, cst.Attribute)) and path_of(node):
        return _path_varies(flow, node, depth)
    if _is_received(flow, node):
        return True
    from_parts = (varies(flow, part, depth + 1) for part in _parts(node)) if depth < 12 else ()
    return any(from_parts)


def _is_received(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the expression takes the next message of a queue, a socket or a person, in a loop."""
    if not isinstance(node, cst.Call) or method(node) not in _RECEIVES or not in_loop(flow, node):
        return False
    # `settings.get("key")` looks up, `queue.get()` receives.
    return method(node) not in ("get", "pop") or not any(arg.keyword is None for arg in node.args)


def _parts(node: cst.CSTNode) -> list[cst.CSTNode]:
    if isinstance(node, cst.Call):
        func = [node.func.value] if isinstance(node.func, cst.Attribute) else []
        return [*func, *(arg.value for arg in node.args)]
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    if isinstance(node, (cst.Subscript, cst.Attribute, cst.Await)):
        inner: list[cst.CSTNode] = [node.expression if isinstance(node, cst.Await) else node.value]
        return inner
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    return [node.expression] if isinstance(node, cst.UnaryOperation) else []


def _path_varies(flow: Flow, node: cst.Name | cst.Attribute, depth: int) -> bool:
    bindings = flow.bindings(node)
    if not bindings and isinstance(node, cst.Attribute):
        return varies(flow, node.value, depth + 1)
    for binding in bindings:
        if binding.how == "item" or (binding.how == "augment" and in_loop(flow, binding.node)):
            return True
        if binding.how == "parameter" and isinstance(binding.node, cst.Param) and _argument_varies(flow, binding.node):
            return True
        value = binding.value if binding.how in ("assign", "element") and depth < 12 else None
        if value is not None and varies(flow, value, depth + 1):
            return True
    return False


def _argument_varies(flow: Flow, param: cst.Param) -> bool:
    function = objects.definition(flow, param)
    passed = objects.passed(flow, param)
    constants = {repr(constant) for arg in passed for constant in flow.constants(arg)}
    if len(constants) > 1 or any(varies(flow, arg, 6) for arg in passed if not flow.constants(arg)):
        return True
    return is_handler(flow, function) and not passed


def is_handler(flow: Flow, function: cst.CSTNode) -> bool:
    """Whether the function answers requests: it has a route, or its parameter is called a request."""
    if not isinstance(function, cst.FunctionDef):
        return False
    routes = {"get", "post", "put", "websocket", "route", "api_route", "predict", "method", "rpc"}
    for decorator in function.decorators:
        target = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
        if path_of(target).count(".") and path_of(target).split(".")[-1] in routes:
            return True
    if any(_is_request(flow, param) for param in function.params.params):
        return True
    names = {param.name.value for param in function.params.params}
    return bool(names & {"request", "req", "payload"})


def _is_request(flow: Flow, param: cst.Param) -> bool:
    """Whether the parameter is annotated with a pydantic model of the file."""
    annotation = param.annotation.annotation if param.annotation is not None else None
    for value in flow.values(annotation) if annotation is not None else []:
        if isinstance(value.node, cst.ClassDef):
            names = {name for base in value.node.bases for name in flow.names(base.value)}
            return any(name.startswith("pydantic.") for name in names)
    return False
