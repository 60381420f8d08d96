"""What of a graph must be equal on all ranks: its outline, and what it exchanges with the others.

Ranks may compile graphs with other constants (the offset of a shard of the vocabulary) or other sizes of parameters
(the last, smaller shard), and that is well. Graphs that exchange other data with each other wait for what never comes.
"""

from __future__ import annotations

import hashlib
import re

_NUMBER = re.compile(r"(?<![\w.])-?(?:0x[01]\.[0-9a-f]+p[+-]\d+|\d+)(?![\w.])")
_REFERENCE = re.compile(r"\b[in]\d+\b")


def outline(text: str) -> str:
    """Give a digest of a graph's text in which every number among the arguments, and every literal tensor, is blank."""
    return _digest([_blank(line) for line in text.splitlines()])


def exchange(text: str) -> str:
    """Give a digest of the graph's collectives in their order: operator, group, reduction, shape; empty for none."""
    lines = [_REFERENCE.sub("", line.partition(" = ")[2]) for line in text.splitlines() if "c10d" in line]
    return _digest(lines) if lines else ""


def _blank(line: str) -> str:
    head, mark, result = line.rpartition(" -> ")
    if not mark:
        head, mark, result = line, "", ""
    if " = input " in head:
        return line
    if " = constant " in head:
        return head.rpartition(" ")[0]
    return f"{_NUMBER.sub('#', head)}{mark}{result}"


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
