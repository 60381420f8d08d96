"""Watches where Dynamo breaks a graph in two: the line, and the kind of break, never a value."""

from __future__ import annotations

import functools
from pathlib import Path
from traceback import StackSummary
from types import CodeType
from typing import Any

import torch

from shapeguard.trace.recorder import Recorder

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_LONGEST = 100
_READS = ("item", "tolist", "ata-dependent", "data dependent", "Dynamic", "numpy")
"""In the kinds of break that bring a tensor's values to Python."""


def watch(recorder: Recorder) -> None:
    """Note every break of the regions that this process compiles; Dynamo is not imported before the program does so."""
    plain = torch.compile

    @functools.wraps(plain)
    def compile(*args: Any, **kwargs: Any) -> Any:
        _follow(recorder)
        return plain(*args, **kwargs)

    torch.compile = compile


@functools.cache
def _follow(recorder: Recorder) -> None:
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Translator

    plain = Translator.log_graph_break
    told: set[object] = set()

    @functools.wraps(plain)
    def log_graph_break(self: Any, *args: Any, **kwargs: Any) -> None:
        error = kwargs.get("exc") or next((each for each in args if isinstance(each, BaseException)), None)
        event = _event(recorder, self, error)
        if event is not None and str(event) not in told:
            told.add(str(event))
            if any(word in event["reason"] for word in _READS):
                recorder.reads.add((event["site"]["file"], event["site"]["function"]))
            recorder.emit(event)
        plain(self, *args, **kwargs)

    Translator.log_graph_break = log_graph_break  # type: ignore[method-assign]
    _hide_own_frames()


def _hide_own_frames() -> None:
    """Leave our wrapper of `Module.__call__` out of what Dynamo shows to the user as the user's code."""
    context = torch._guards.TracingContext
    plain = context.extract_stack

    @functools.wraps(plain)
    def extract_stack() -> StackSummary:
        return StackSummary.from_list([row for row in plain() if not row.filename.startswith(_PACKAGE)])

    context.extract_stack = staticmethod(extract_stack)  # type: ignore[method-assign]


def _reason(error: Any) -> str:
    kind = str(getattr(error, "gb_type", "") or "")
    # In a loop another kind takes the place of the first, which its text begins with.
    first = str(getattr(error, "msg", "")).split("\n")[0]
    return first if kind and len(first) <= _LONGEST else kind.split("\n")[0]


def _event(recorder: Recorder, translator: Any, error: Any) -> dict[str, Any] | None:
    """Give the break as an event; None where none of the user's lines is in it."""
    stack = list(getattr(error, "real_stack", None) or torch._guards.TracingContext.extract_stack())
    users = [row for row in stack if recorder.sites.is_users_file(row.filename)]
    if not users:
        return None
    inner = users[-1]
    root = getattr(translator, "f_code", None)
    event: dict[str, Any] = {
        "type": "break",
        # The kind is one of a fixed list; the message beside it may hold values and stays here.
        "reason": _reason(error),
        "site": {"file": recorder.sites.name(inner.filename), "line": inner.lineno, "function": inner.name},
        "resumes": stack[0].lineno,
        "is_loop": bool(getattr(translator, "maybe_has_backedge", bool)()),
    }
    if isinstance(root, CodeType):
        event["code"] = recorder.sites.of_code(root)
    return event
