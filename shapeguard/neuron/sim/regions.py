"""What Dynamo knows of a region it hands over: inputs by the user's names, constants, modes, why it compiles again."""

from __future__ import annotations

import inspect
import re
import sys
import weakref
from types import CodeType, FrameType
from typing import Any

import torch
from torch import fx

from shapeguard.neuron.sim.specs import dtype_name, layout_of
from shapeguard.neuron.sim.storage import origin_of, tokenized_of

_MAX_CONSTANTS = 50
_LONGEST_WORD = 24
_CONSTANT_GUARDS = ("CONSTANT_MATCH", "EQUALS_MATCH")
_LENGTH_GUARDS = ("SEQUENCE_LENGTH", "LIST_LENGTH", "DICT_LENGTH", "TUPLE_ITERATOR_LEN")
_LOCAL = re.compile(r"^L\['(\w+)'\](.*)$")


def dynamo_frame() -> FrameType | None:
    """Find Dynamo's own frame that compiles a code object, from inside of a backend."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_compile" and frame.f_code.co_filename.endswith("convert_frame.py"):
            return frame
        frame = frame.f_back
    return None


def code_of(frame: FrameType | None) -> CodeType | None:
    """Give the code object that Dynamo compiles."""
    code = frame.f_locals.get("code") if frame is not None else None
    return code if isinstance(code, CodeType) else None


def describe(graph: fx.GraphModule, frame: FrameType | None) -> dict[str, Any]:
    """Give the facts of a region for its event."""
    scope = Scope(frame)
    constants, training = _constants(frame, scope)
    return {
        "inputs": inputs_of(graph, scope),
        "origins": _origins(graph, scope),
        "instance": scope.instance,
        "constants": constants,
        "guard": _guard(frame),
        "modes": {
            "grad": torch.is_grad_enabled(),
            "inference": torch.is_inference_mode_enabled(),
            "training": training,
            "autocast": _autocast(),
        },
        "nodes": len(graph.graph.nodes),
    }


def _autocast() -> str:
    for device in ("neuron", "cpu"):
        if torch.is_autocast_enabled(device):
            return dtype_name(torch.get_autocast_dtype(device))
    return "off"


def inputs_of(graph: fx.GraphModule, scope: Scope) -> list[dict[str, Any]]:
    """Describe the tensors that the region takes, without parameters and buffers; an open size is its symbol."""
    rows = []
    for node in graph.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("example_value")
        source = source_of(node)
        if not isinstance(value, torch.Tensor) or "_parameters[" in source or "_buffers[" in source:
            continue
        if isinstance(value, torch.nn.Parameter):
            continue
        rows.append(
            {
                "path": scope.readable(source) or str(node.target),
                "shape": [int(length) if isinstance(length, int) else str(length) for length in value.shape],
                "dtype": dtype_name(value.dtype),
                "layout": str(layout_of(value) or ""),
                "device": value.device.type,
                "requires_grad": value.requires_grad,
            }
        )
    return rows


def _origins(graph: fx.GraphModule, scope: Scope) -> list[dict[str, Any]]:
    """Give the lines that made the inputs and brought them to the device."""
    found: dict[str, dict[str, Any]] = {}
    for node in graph.graph.nodes:
        source = source_of(node) if node.op == "placeholder" else ""
        if not source.startswith("L[") or "_parameters[" in source or "_buffers[" in source:
            continue
        value = scope.lookup(source)
        if not isinstance(value, torch.Tensor):
            continue
        path = scope.readable(source)
        for role, site in (("move", origin_of(value)), ("tokenize", tokenized_of(value))):
            if site:
                found[f"{path} {role} {site}"] = {"role": role, "path": path, **site}
    return list(found.values())


def source_of(node: fx.Node) -> str:
    """Give where Dynamo found an input, as its guards write it."""
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)


_INSTANCES: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()


class Scope:
    """The names of the frame that Dynamo compiles, as its guards and sources write them."""

    def __init__(self, frame: FrameType | None) -> None:
        facts = frame.f_locals if frame is not None else {}
        self._locals: dict[str, Any] = facts.get("locals") or {}
        function = _wrapped(self._locals, code_of(frame))
        self._parameters = _parameters(function)
        given = self._locals.get("args") or ()
        owners = [getattr(function, "__self__", function), self._locals.get("self"), *given[:1]]
        modules = [owner for owner in owners if isinstance(owner, torch.nn.Module)]
        self.instance = _INSTANCES.setdefault(modules[0], len(_INSTANCES) + 1) if modules else 0
        """Which module it is, from 1: two of one class share their code. 0 for a function."""

    def readable(self, source: str) -> str:
        """Give "input_ids" for "L['kwargs']['input_ids']", and the parameter's name for "L['args'][0]"."""
        found = _LOCAL.match(source)
        if not found:
            return source
        name, rest = found.groups()
        place = _ITEM.match(rest)
        if place is None or name not in ("args", "kwargs"):
            return f"{name}{rest}"
        word, index = place.groups()
        if name == "kwargs" and word:
            return f"{word}{rest[place.end() :]}"
        if name == "args" and index and int(index) < len(self._parameters):
            return f"{self._parameters[int(index)]}{rest[place.end() :]}"
        return f"{name}{rest}"

    def lookup(self, name: str) -> Any:
        """Follow a guard's name ("L['group'][0].shape") through plain items and attributes; None where it isn't one."""
        value: Any = self._locals
        rest = name[1:]
        while rest:
            step = _STEP.match(rest)
            if step is None:
                return None
            try:
                item, attribute = step.groups()
                value = getattr(value, attribute) if attribute else value[_item(item)]
            except (KeyError, IndexError, AttributeError, TypeError):
                return None
            rest = rest[step.end() :]
        return value


_ITEM = re.compile(r"\[(?:'(\w+)'|(\d+))\]")
_STEP = re.compile(r"\[('(?:[^'\\]|\\.)*'|-?\d+)\]|\.(\w+)")


def _wrapped(names: dict[str, Any], code: CodeType | None) -> Any:
    """Give what the user had compiled, where Dynamo compiles a wrapper `inner(*args, **kwargs)` around it."""
    if code is None or not {"args", "kwargs"} <= set(names):
        return None
    if isinstance(names.get("self"), torch.nn.Module):
        return names["self"]
    inside = [names.get(name) for name in code.co_freevars]
    return next((value for value in inside if callable(value)), None)


def _parameters(function: Any) -> list[str]:
    """Name the positional parameters of what is compiled; none where it takes any number of them."""
    if function is None:
        return []
    if isinstance(function, torch.nn.Module):
        function = function.forward
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in found if parameter.kind in kinds]


def _constants(frame: FrameType | None, scope: Scope) -> tuple[list[dict[str, str]], bool | None]:
    """Give the Python values that Dynamo made part of the graph, and whether its modules are in training mode."""
    context = torch._guards.TracingContext.try_get()
    if context is None or frame is None:
        return [], None
    found: dict[str, str] = {}
    flags: set[bool] = set()
    for guard in context.guards_context.dynamo_guards:
        kind = guard.create_fn_name() if hasattr(guard, "create_fn_name") else ""
        name = str(guard.name)
        if not name.startswith("L[") or "__" in name:
            continue
        if kind in _CONSTANT_GUARDS:
            _add_constant(name, scope, found, flags)
        elif kind in _LENGTH_GUARDS:
            value = scope.lookup(name)
            if isinstance(value, (list, tuple, dict)):
                found[f"len({scope.readable(name)})"] = str(len(value))
    rows = [{"path": path, "value": found[path]} for path in sorted(found)[:_MAX_CONSTANTS]]
    return rows, (None if not flags else True in flags)


def _add_constant(name: str, scope: Scope, found: dict[str, str], flags: set[bool]) -> None:
    value = scope.lookup(name)
    if name.endswith(".training") and isinstance(value, bool):
        flags.add(value)
    elif "_modules[" not in name and (isinstance(value, (bool, int, float)) or _is_word(value)):
        found[scope.readable(name)] = str(value)


def _is_word(value: Any) -> bool:
    """Tell whether a text is a switch ("mean", "left"); longer ones could be anybody's data and stay out."""
    return isinstance(value, str) and value.isidentifier() and len(value) <= _LONGEST_WORD


def _item(text: str) -> str | int:
    return text[1:-1] if text.startswith("'") else int(text)


_SIZES = ("size mismatch", "stride mismatch", "dtype mismatch")


def _guard(frame: FrameType | None) -> str:
    """Give the guard that failed. Dynamo names one for each graph there is, the newest graph first.

    A graph with these very shapes that another guard kept from use is the nearest one; only where all differ in shape
    is a shape the reason.
    """
    facts = frame.f_locals if frame is not None else {}
    reasons = [_shareable(str(reason)) for reason in facts.get("reasons") or [facts.get("recompile_reason")] if reason]
    others = [reason for reason in reasons if not any(word in reason for word in _SIZES)]
    return (others or reasons or [""])[0]


def _shareable(guard: str) -> str:
    """Keep a guard's condition, without the source line and path that Dynamo adds to it."""
    return guard.split("  #")[0].strip()
