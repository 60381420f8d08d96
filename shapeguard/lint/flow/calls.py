"""Calls with their arguments: written out, bound by `partial`, unpacked from dicts, or made by a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow import objects
from shapeguard.lint.flow.values import Value, method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_STARTERS = frozenset({"Thread", "Process", "Timer"})
_PARSERS = frozenset({"parse_args_into_dataclasses", "parse_json_file", "parse_yaml_file"})
_RUNNERS = {"submit": 0, "to_thread": 0, "run_in_executor": 1, "run_sync": 0, "run_in_threadpool": 0}


class Invocation:
    """One call as it will be made: a callee and all its arguments."""

    def __init__(
        self, flow: Flow, node: cst.Call, func: cst.BaseExpression, args: Sequence[cst.Arg], *, open: bool = False
    ) -> None:
        self.flow = flow
        self.node = node
        """The call in the source, where the finding stands."""
        self.func = func
        self.args = tuple(args)
        self.open = open
        """More arguments may follow, as after `partial`."""

    @cached_property
    def is_bound(self) -> bool:
        """Whether a `partial` under the callee's name binds some of the arguments."""
        return any(value.kind == "partial" for value in self.flow.values(self.node.func))

    @cached_property
    def names(self) -> frozenset[str]:
        """The qualified names that the callee may have; a class of the file counts as its base."""
        found = self.flow.names(self.func)
        for value in self.flow.values(self.func):
            if isinstance(value.node, cst.ClassDef) and value.kind == "class":
                found |= _bases(self.flow, value.node)
        return frozenset(found)

    @cached_property
    def method(self) -> str:
        """The last name of the callee: `generate` for `model.generate(...)`, also under an alias."""
        callee = self._callee
        if isinstance(callee, cst.Attribute):
            return callee.attr.value
        return callee.value if isinstance(callee, cst.Name) else ""

    @cached_property
    def receiver(self) -> cst.BaseExpression | None:
        """The expression before the dot of the callee."""
        return self._callee.value if isinstance(self._callee, cst.Attribute) else None

    @cached_property
    def _callee(self) -> cst.CSTNode:
        if isinstance(self.func, cst.Name):
            for value in self.flow.values(self.func):
                if value.kind == "attribute":
                    return value.node
        return self.func

    def is_a(self, root: str, *last: str) -> bool:
        """Whether the callee is one of these names of the package, wherever in it they stand."""
        parts = [name.split(".") for name in self.names]
        return any(part[0] == root and part[-1] in last for part in parts)

    def argument(self, name: str, position: int | None = None) -> list[cst.BaseExpression]:
        """Give what may be passed under the name; nothing where it is not given."""
        found: list[cst.BaseExpression] = []
        for arg in self.args:
            if arg.keyword is not None and arg.keyword.value == name:
                found = [arg.value]
            elif arg.star == "**":
                found = self.flow.mapping(arg.value).entries.get(name, []) or found
        if not found and position is not None:
            found = self.positional(position)
        return found or self._fields.get(name, [])

    def positional(self, position: int) -> list[cst.BaseExpression]:
        """Give the argument at the position."""
        plain = [arg for arg in self.args if arg.keyword is None and arg.star != "**"]
        if any(arg.star for arg in plain[: position + 1]) or position >= len(plain):
            return []
        return [plain[position].value]

    def values(self, name: str, position: int | None = None) -> list[Value]:
        """Give the values that may be passed under the name."""
        return [value for node in self.argument(name, position) for value in self.flow.values(node)]

    def constant(self, name: str, position: int | None = None, *, default: object = ...) -> object:
        """Give the one constant passed: the default where surely none is, Ellipsis where that cannot be told."""
        given = self.argument(name, position)
        if not given:
            return default if self.is_complete else ...
        constants = {repr(self.flow.only(node)): self.flow.only(node) for node in given}
        return constants.popitem()[1] if len(constants) == 1 else ...

    def lacks(self, name: str, position: int | None = None) -> bool:
        """Whether the argument surely is not given."""
        return self.is_complete and not self.argument(name, position)

    @cached_property
    def is_complete(self) -> bool:
        """Whether all arguments can be seen."""
        if self.open or any(arg.star == "*" for arg in self.args):
            return False
        return all(self.flow.mapping(arg.value).is_complete for arg in self.args if arg.star == "**")

    @cached_property
    def _fields(self) -> dict[str, list[cst.BaseExpression]]:
        """What a subclass in the file gives by default."""
        found: dict[str, list[cst.BaseExpression]] = {}
        for value in self.flow.values(self.func):
            scope = self.flow.index.inner.get(value.node) if value.kind == "class" else None
            for name, bindings in scope.bindings.items() if scope is not None else ():
                found[name] = [_default(b.value) for b in bindings if b.how == "assign" and b.value is not None]
        return found


def _default(node: cst.BaseExpression) -> cst.BaseExpression:
    """Give what `field(default=…)` of a dataclass stands for."""
    if isinstance(node, cst.Call) and method(node) == "field":
        return next((a.value for a in node.args if a.keyword is not None and a.keyword.value == "default"), node)
    return node


def _bases(flow: Flow, node: cst.ClassDef) -> set[str]:
    """Give the qualified names of the bases, where the class keeps their constructor."""
    if "__init__" in flow.index.inner[node].bindings:
        return set()
    return {name for base in node.bases for name in flow.names(base.value)}


def invocations(flow: Flow, call: cst.Call) -> Iterator[Invocation]:
    """Give the call, and those that it has others make."""
    yield from _bound(flow, call, call.func, call.args)
    last = method(call)
    args = call.args
    if last == "partial" and args and "functools.partial" in flow.names(call.func):
        yield Invocation(flow, call, args[0].value, args[1:], open=True)
    elif last in _STARTERS:
        yield from _started(flow, call)
    elif last in _RUNNERS and len(args) > _RUNNERS[last] and not any(arg.star for arg in args[: _RUNNERS[last] + 1]):
        first = _RUNNERS[last]
        yield from _bound(flow, call, args[first].value, args[first + 1 :])
    elif last == "parse_dict" and args:
        for made in objects.parsed_classes(flow, call):
            yield Invocation(flow, call, made, [cst.Arg(args[0].value, star="**")])
    elif last in _PARSERS:
        # The rest comes from the command line or a file; the defaults of the file's own classes stand here.
        for made in objects.parsed_classes(flow, call):
            yield Invocation(flow, call, made, [], open=True)


def _bound(
    flow: Flow, call: cst.Call, func: cst.BaseExpression, args: Sequence[cst.Arg], depth: int = 0
) -> Iterator[Invocation]:
    """Give the call, with the arguments that a `partial` under its name has bound already."""
    partials = [value.node for value in flow.values(func) if value.kind == "partial"] if flow.binds_arguments else []
    for node in partials if depth < 4 else []:
        assert isinstance(node, cst.Call)
        if node.args:
            yield from _bound(flow, call, node.args[0].value, [*node.args[1:], *args], depth + 1)
    if not partials:
        yield Invocation(flow, call, func, args)


def _started(flow: Flow, call: cst.Call) -> Iterator[Invocation]:
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    target = named.get("target")
    if target is None:
        return
    args: list[cst.Arg] = []
    positional = named.get("args")
    if isinstance(positional, (cst.Tuple, cst.List)):
        args += [cst.Arg(element.value) for element in positional.elements]
    elif positional is not None:
        args.append(cst.Arg(positional, star="*"))
    if "kwargs" in named:
        args.append(cst.Arg(named["kwargs"], star="**"))
    yield from _bound(flow, call, target, args)
