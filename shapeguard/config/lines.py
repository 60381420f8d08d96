"""Finds the line of a key in a TOML file, for errors: TOML's own reader keeps no lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEY = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEAD = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_PAIR = re.compile(rf"\s*({_DOTTED})\s*=")
_PART = re.compile(rf"{_KEY}|\[\d+\]")

Path = tuple[str, ...]


def line_of(text: str, where: str) -> int:
    """Give the line of a dotted key such as `jobs."train".waivers[1].until`, or of the table it would stand in."""
    wanted = _parts(where)
    best, found = 0, 1
    for number, path in _paths(text):
        alike = _alike(path, wanted)
        if alike > best:
            best, found = alike, number
    return found


def _paths(text: str) -> Iterator[tuple[int, Path]]:
    """Give each line that names a key or a table, with all of its path; tables of a list by their number."""
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if head := _HEAD.match(line):
            table = _numbered(_parts(head[2]), counts)
            if head[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                table = (*table, str(counts[table]))
            yield number, table
        elif pair := _PAIR.match(line):
            yield number, (*table, *_parts(pair[1]))


def _numbered(path: Path, counts: dict[Path, int]) -> Path:
    """Put in the number of the last table of each list on the way."""
    whole: Path = ()
    for index, part in enumerate(path):
        whole = (*whole, part)
        if whole in counts and index < len(path) - 1:
            whole = (*whole, str(counts[whole]))
    return whole


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'[]") for part in _PART.findall(dotted))


def _alike(path: Path, wanted: Path) -> int:
    number = 0
    for mine, other in zip(path, wanted, strict=False):
        if mine != other:
            break
        number += 1
    return number
