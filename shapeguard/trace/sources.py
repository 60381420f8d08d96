"""Looks up in the user's own files where an object of a library was made: by the name of what was called."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from shapeguard.trace.sites import Sites


def made_at(sites: Sites, *names: str) -> dict[str, Any] | None:
    """Give the line of the call of a name in a file that has a frame on the stack; None where there is none or several.

    Only line numbers leave this function: no source text is written down.
    """
    frame: FrameType | None = sys._getframe(1)
    looked: set[str] = set()
    while frame is not None:
        filename = frame.f_code.co_filename
        if sites.is_users(frame.f_code) and filename not in looked:
            looked.add(filename)
            lines = [line for name in names for line in _calls(filename).get(name, [])]
            if len(lines) == 1:
                return {"file": sites.name(filename), "line": lines[0], "function": "<module>"}
        frame = frame.f_back
    return None


@functools.cache
def _calls(filename: str) -> dict[str, list[int]]:
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[str, list[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found.setdefault(name, []).append(node.lineno)
            for keyword in node.keywords:
                # `compile(dynamic=True)` is told from one that names no such thing.
                if isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
                    found.setdefault(f"{name}({keyword.arg}=True)", []).append(node.lineno)
    return found
