"""Reads the texts of a lock back into inputs and constants, so that they can be compared with those of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shapeguard.lock.values import eager_text
from shapeguard.runs.values import Compile, Input

_INPUT = re.compile(r"(?P<path>\S+) (?P<shape>scalar|[\d?]+(?:×[\d?]+)*) (?P<dtype>\w+)(?: (?P<layout>.*))?")
_NEXT_INPUT = re.compile(r", (?=\S+ (?:scalar|[\d?]+(?:×[\d?]+)*) \w)")
_NEXT_CONSTANT = re.compile(r", (?=[A-Za-z_][\w.\[\]]*=)")


def operator(line: str) -> str:
    """Give the operator of an eager signature's line."""
    return line.partition("(")[0]


def as_compile(line: str) -> Compile:
    """Give an eager signature's line as a compile with inputs and constants."""
    inside = eager_text(line).partition("(")[2].removesuffix(")")
    inputs, _, constants = inside.partition("; ")
    if not _INPUT.match(inputs) and not constants:
        inputs, constants = "", inputs
    rows = inputs_of(_NEXT_INPUT.split(inputs)) if inputs else ()
    pairs = (part.partition("=") for part in _NEXT_CONSTANT.split(constants)) if constants else ()
    return Compile(n=0, kind="", outcome="", inputs=rows, constants=tuple((name, value) for name, _, value in pairs))


def inputs_of(texts: Iterable[str]) -> tuple[Input, ...]:
    """Give the texts of inputs as values; those that say only how many more there are left out."""
    return tuple(row for row in map(_input, texts) if row is not None)


def _input(text: str) -> Input | None:
    match = _INPUT.fullmatch(text)
    if match is None:
        return None
    sizes = () if match["shape"] == "scalar" else match["shape"].split("×")
    shape = tuple(int(size) if size.isdigit() else -1 for size in sizes)
    return Input(path=match["path"], shape=shape, dtype=match["dtype"], layout=match["layout"] or "")
