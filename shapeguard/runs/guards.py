"""Read the guard that Dynamo says has failed, for what the recorded facts leave open."""

from __future__ import annotations

import re

from shapeguard.runs.compare import Change, Position

_NAME = r"(?:L\['(?P<local>\w+)'\]|(?P<plain>\w+))(?P<rest>[\w.\[\]'\"]*)"
_SIZE = re.compile(rf"'?{_NAME}'? size mismatch at index (?P<dim>\d+)\. expected (?P<old>\d+), actual (?P<new>\d+)")
_RANK = re.compile(rf"'?{_NAME}'? rank mismatch\. expected (?P<old>\d+), actual (?P<new>\d+)")
_DTYPE = re.compile(rf"'?{_NAME}'? dtype mismatch\. expected (?P<old>\w+), actual (?P<new>\w+)")
_STRIDE = re.compile(rf"'?{_NAME}'? stride mismatch at index \d+\. expected (?P<old>\d+), actual (?P<new>\d+)")
_GRAD = re.compile(rf"'?{_NAME}'? requires_grad mismatch\. expected requires_grad=(?P<old>\d+)")
_KEYS = re.compile(rf"'?{_NAME}'? dispatch key set mismatch")
_LENGTH = re.compile(rf"len\({_NAME}\) == (?P<old>\d+)")
_TRAINING = re.compile(r"\.training\b|\['training'\]")
_VALUE = re.compile(rf"{_NAME} == (?P<old>-?[\w.+-]+)")

_ANOTHER_OBJECT = re.compile(
    r"___check_(obj_id|type_id)\(L\['self'\]|___check_current_backend|_parameters\[|_buffers\[|BACKEND_MATCH"
)


def is_another_object(guard: str) -> bool:
    """Whether the guard only says that this is another model, or another `torch.compile` of one."""
    return bool(_ANOTHER_OBJECT.search(guard)) and not _TRAINING.search(guard)


def from_guard(guard: str) -> Change:
    """Give the change that the guard's text tells of; its text itself where none is known."""
    for kind, pattern in (("shape", _SIZE), ("shape", _RANK), ("dtype", _DTYPE), ("layout", _STRIDE)):
        if match := pattern.search(guard):
            dim = int(match["dim"]) if "dim" in match.re.groupindex else None
            return Change(Position(kind, _path(match), dim), _number(match["old"]), _number(match["new"]))
    if match := _GRAD.search(guard):
        old = match["old"] == "1"
        return Change(Position("mode", f"grad of {_path(match)}"), str(old), str(not old))
    if _TRAINING.search(guard):
        return Change(Position("mode", "training"), "", "")
    for mode in ("grad_mode", "autocast", "inference_mode"):
        if mode in guard or (mode == "grad_mode" and "torch.no_grad" in guard):
            return Change(Position("mode", mode.removesuffix("_mode")), "", "")
    if match := _KEYS.search(guard):
        return Change(Position("mode", f"dispatch keys of {_path(match)}"), "", "")
    if match := _LENGTH.search(guard):
        return Change(Position("value", _path(match)), int(match["old"]), "")
    if match := _VALUE.search(guard):
        return Change(Position("value", _path(match)), _number(match["old"]), "")
    return Change(Position("guard", guard), "", "")


def _path(match: re.Match[str]) -> str:
    path = (match["local"] or match["plain"] or "") + match["rest"].replace("['", ".").replace("']", "")
    # Dynamo puts the whole name in quotes of its own; keyword arguments are known by their names.
    return path.rstrip("'").removeprefix("kwargs.")


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
