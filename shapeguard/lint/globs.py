"""Patterns for paths, with git's meaning: the same in ignore files, `exclude`, `per-file-ignores`, `neuron`, `lengths`.

`name` matches at any depth, `a/b` and `/a` from the folder of the file the pattern stands in, `dir/` folders only, `**`
any number of folders, and `!pattern` takes back what an earlier pattern matched. A folder that matches takes with it
all that lies below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_NAME = re.compile(r"[\w.-]+\Z")


class Patterns:
    """An ordered list of patterns that belong to one folder."""

    def __init__(self, patterns: Iterable[str]) -> None:
        listed = list(patterns)
        # Most patterns are plain names, which a set answers; mixed with `!` the order counts.
        is_plain = not any(pattern.startswith("!") for pattern in listed)
        self._names = frozenset(filter(_NAME.match, listed)) if is_plain else frozenset()
        self._rules = [rule for p in listed if p not in self._names and (rule := _compile(p)) is not None]

    def __bool__(self) -> bool:
        return bool(self._rules or self._names)

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether the last pattern that matches the path itself takes it in; None where none does."""
        if self._names and path.rpartition("/")[2] in self._names:
            return True
        for expression, negated, folders_only in reversed(self._rules):
            if (is_folder or not folders_only) and expression.match(path):
                return not negated
        return None

    def match(self, path: str) -> bool:
        """Whether the file is matched, by itself or through a folder it lies in; `path` is relative, with slashes."""
        if not self:
            return False
        parts = path.split("/")
        for length in range(1, len(parts)):
            if self.decide("/".join(parts[:length]), is_folder=True):
                return True
        return bool(self.decide(path, is_folder=False))


def lines_of(text: str) -> list[str]:
    """The patterns of an ignore file."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> tuple[re.Pattern[str], bool, bool] | None:
    text = _without_trailing_blanks(pattern)
    negated = text.startswith("!")
    text = text[1:] if negated else text
    if text.startswith("./"):
        text = text[1:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text:
        return None
    anchored = "/" in text
    body = _translate(text.lstrip("/"))
    prefix = "" if anchored else "(?:.*/)?"
    try:
        return re.compile(f"{prefix}{body}\\Z", re.DOTALL), negated, folders_only
    except re.error:
        # A bracket that git would not understand either matches nothing.
        return None


def _without_trailing_blanks(pattern: str) -> str:
    text = pattern.rstrip("\r\n")
    stripped = text.rstrip(" ")
    return stripped + " " if stripped.endswith("\\") and len(stripped) < len(text) else stripped


_TOKEN = re.compile(r"/\*\*/|/\*\*\Z|\A\*\*/|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)


def _translate(glob: str) -> str:
    glob = re.sub(r"(?:\A|(?<=/))\*\*(?:/\*\*)+(?=/|\Z)", "**", glob)
    if glob == "**":
        return ".*"
    return "".join(_piece(token[0]) for token in _TOKEN.finditer(glob))


def _piece(token: str) -> str:
    fixed = {"/**/": "/(?:.*/)?", "/**": "/.+", "**/": "(?:.*/)?", "?": "[^/]"}
    if token in fixed:
        return fixed[token]
    if token[0] == "*":
        return "[^/]*"
    if token[0] == "[" and len(token) > 2:
        inner = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"(?!/)[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
    return re.escape(token[1:] if token[0] == "\\" and len(token) > 1 else token)
