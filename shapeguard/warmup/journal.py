"""The journal of a warm-up: a line for each thing that happened, on disk before the next one begins."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shapeguard.core.errors import UsageError

SCHEMA = 1
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a journal tells."""

    header: Mapping[str, object] = field(default_factory=dict)
    finished: frozenset[str] = frozenset()
    """Recipes that came to their end."""
    tries: Mapping[str, int] = field(default_factory=dict)
    """Tries that were begun, by recipe."""
    peaks: Mapping[str, int] = field(default_factory=dict)
    """Memory at most, by recipe."""
    walls: Mapping[str, float] = field(default_factory=dict)
    """Seconds, by recipe."""


def read(path: Path) -> Past:
    """Read a journal, or give an empty past; a torn last line is what a kill leaves."""
    rows = list(_rows(path))
    finished: set[str] = set()
    tries: dict[str, int] = {}
    peaks: dict[str, int] = {}
    walls: dict[str, float] = {}
    for row in rows:
        recipe, what = str(row.get("recipe", "")), row.get("type")
        if what == "started":
            tries[recipe] = tries.get(recipe, 0) + 1
        elif what == "finished":
            finished.add(recipe)
            walls[recipe] = _number(row.get("wall_s"))
        if peak := int(_number(row.get("peak_bytes"))):
            peaks[recipe] = max(peak, peaks.get(recipe, 0))
    header = rows[0] if rows and rows[0].get("type") == "plan" else {}
    return Past(header=header, finished=frozenset(finished), tries=tries, peaks=peaks, walls=walls)


def _number(value: object) -> float:
    is_number = isinstance(value, (int, float)) and 0 <= value < 1 << 60
    return float(value) if is_number else 0.0  # type: ignore[arg-type]


def _rows(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        with path.open("rb") as stream:
            lines = stream.read(_MOST_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


class Journal:
    """Appends lines; each is on disk when `write` returns."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (0 if keep else os.O_TRUNC)
        self._file = os.open(path, flags, 0o600)
        if keep:
            # A torn line of before must not swallow the next one.
            os.write(self._file, b"\n")

    def write(self, **row: object) -> None:
        """Append a line."""
        os.write(self._file, json.dumps(row, sort_keys=True, ensure_ascii=False).encode() + b"\n")
        os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Refuse a second warm-up of one project at a time."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                "another warm-up of this project runs now",
                hint="wait for its end; parts of one warm-up take --shard I/N",
            ) from error
        yield
    finally:
        os.close(descriptor)
