"""Writes results: a JSON line each, or the texts alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

# What many programs take for the end of a line, beside what JSON escapes by itself.
_ENDS_OF_LINES = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


def is_first() -> bool:
    """Whether this process is the one that speaks."""
    return os.environ.get("RANK", "0") == "0"


def write(row: Mapping[str, Any]) -> None:
    """Write a row as a line of JSON, at once."""
    if is_first():
        sys.stdout.write(json.dumps(row, ensure_ascii=False).translate(_ENDS_OF_LINES) + "\n")
        sys.stdout.flush()


def write_text(text: str) -> None:
    """Write text as it is, at once."""
    if is_first():
        sys.stdout.write(text)
        sys.stdout.flush()


def say(text: str) -> None:
    """Tell people something, beside the results."""
    if is_first():
        sys.stderr.write(text + "\n")
