"""What Dynamo knows of the region it hands over: inputs by the user's names, constants, modes, why it compiles again."""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType
from typing import Any

import torch
from torch import fx

from shapeguard.neuron.sim.counting import dtype_name, layout_of
from shapeguard.neuron.sim.storage import origin_of

_MAX_CONSTANTS = 50
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
    constants, training = _constants(frame)
    reason = frame.f_locals.get("recompile_reason") if frame is not None else None
    return {
        "inputs": _inputs(graph),
        "origins": _origins(graph, frame),
        "constants": constants,
        "guard": _shareable(str(reason)) if reason else "",
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


def _inputs(graph: fx.GraphModule) -> list[dict[str, Any]]:
    rows = []
    for node in graph.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("example_value")
        source = _source(node)
        if not isinstance(value, torch.Tensor) or "_parameters[" in source or "_buffers[" in source:
            continue
        if isinstance(value, torch.nn.Parameter):
            continue
        rows.append(
            {
                "path": readable(source) or str(node.target),
                "shape": [int(length) if isinstance(length, int) else str(length) for length in value.shape],
                "dtype": dtype_name(value.dtype),
                "layout": str(layout_of(value) or ""),
                "device": value.device.type,
                "requires_grad": value.requires_grad,
            }
        )
    return rows


def _origins(graph: fx.GraphModule, frame: FrameType | None) -> list[dict[str, Any]]:
    """Give the lines that brought the inputs to the device."""
    scope = {"L": frame.f_locals.get("locals", {}) if frame is not None else {}}
    found: dict[str, dict[str, Any]] = {}
    for node in graph.graph.nodes:
        source = _source(node) if node.op == "placeholder" else ""
        if not source.startswith("L[") or "_parameters[" in source or "_buffers[" in source:
            continue
        value = _lookup(source, scope)
        site = origin_of(value) if isinstance(value, torch.Tensor) else None
        if site:
            found[str(site)] = {"role": "move", **site}
    return list(found.values())


def _source(node: fx.Node) -> str:
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)


def readable(source: str) -> str:
    """Give "kwargs['input_ids']" for "L['kwargs']['input_ids']", and "input_ids" for "L['input_ids']"."""
    found = _LOCAL.match(source)
    if not found:
        return source
    name, rest = found.groups()
    inner = re.fullmatch(r"\['(\w+)'\]", rest)
    return inner.group(1) if name == "kwargs" and inner else f"{name}{rest}"


def _constants(frame: FrameType | None) -> tuple[list[dict[str, str]], bool | None]:
    """Give the Python values that Dynamo made part of the graph, and whether its modules are in training mode."""
    context = torch._guards.TracingContext.try_get()
    if context is None or frame is None:
        return [], None
    scope = {"L": frame.f_locals.get("locals", {})}
    found: dict[str, str] = {}
    flags: set[bool] = set()
    for guard in context.guards_context.dynamo_guards:
        kind = guard.create_fn_name() if hasattr(guard, "create_fn_name") else ""
        if not str(guard.name).startswith("L["):
            continue
        if kind in _CONSTANT_GUARDS:
            _add_constant(str(guard.name), scope, found, flags)
        elif kind in _LENGTH_GUARDS and "__" not in str(guard.name):
            value = _lookup(str(guard.name), scope)
            if isinstance(value, (list, tuple, dict)):
                found[f"len({readable(str(guard.name))})"] = str(len(value))
    rows = [{"path": path, "value": found[path]} for path in sorted(found)[:_MAX_CONSTANTS]]
    return rows, (None if not flags else True in flags)


def _add_constant(name: str, scope: dict[str, Any], found: dict[str, str], flags: set[bool]) -> None:
    value = _lookup(name, scope)
    if name.endswith(".training") and isinstance(value, bool):
        flags.add(value)
    elif "_modules[" not in name and "__" not in name and isinstance(value, (bool, int, float)):
        found[readable(name)] = str(value)


_STEP = re.compile(r"\[('(?:[^'\\]|\\.)*'|-?\d+)\]|\.(\w+)")


def _lookup(name: str, scope: dict[str, Any]) -> Any:
    """Follow a guard's name ("L['group'][0].shape") through plain items and attributes; None where it isn't one."""
    value: Any = scope["L"]
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


def _item(text: str) -> str | int:
    return text[1:-1] if text.startswith("'") else int(text)


def _shareable(guard: str) -> str:
    """Keep a guard's condition, without the source line and path that Dynamo adds to it."""
    return guard.split("  #")[0].strip()
