"""Remembers verdicts by what they depend on: the bytes, how they are judged, the rules themselves, and Python.

One JSON file a set of rules and Python, read at the start of a run and replaced at its end. A file that cannot be read,
or that somebody else wrote, is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shapeguard import __version__
from shapeguard.core.files import replace_file
from shapeguard.lint.codec import from_json, to_json
from shapeguard.lint.task import Task, Verdict

SCHEMA = 1
MAX_ENTRIES = 50_000
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by shapeguard.
# For information about cache directory tags see https://bford.info/cachedir/
"""


class ResultCache:
    """The verdicts of earlier runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hits = 0
        self.warning = ""
        """Why the cache could not be written."""
        self._is_changed = False
        self._used: dict[str, Any] = {}
        self._file = folder / f"lint-{_rules_digest()}.json"
        self._entries = _read(self._file)

    def key(self, data: bytes, task: Task) -> str:
        """Digest of all that a verdict depends on."""
        digest = hashlib.blake2b(data, digest_size=16, person=_person(task))
        return digest.hexdigest()

    def get(self, key: str, path: str) -> Verdict | None:
        """The verdict of an equal file, shown as `path`."""
        row = self._entries.get(key)
        if row is None:
            return None
        try:
            verdict = from_json(row or {}, path)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        self._used[key] = row
        self.hits += 1
        return verdict

    def put(self, key: str, verdict: Verdict) -> None:
        """Remember a verdict; a clean one is a mere 0."""
        row = to_json(verdict)
        row.pop("timing", None)
        self._used[key] = row or 0
        self._is_changed = True

    def save(self) -> None:
        """Write the file if there is something new; the entries of this run stay longest."""
        if not self._is_changed:
            return
        kept = {key: row for key, row in self._entries.items() if key not in self._used} | self._used
        newest = dict(list(kept.items())[-MAX_ENTRIES:])
        try:
            _prepare(self.folder)
            text = json.dumps({"schema": SCHEMA, "entries": newest}, separators=(",", ":")) + "\n"
            replace_file(self._file, text.encode())
            _drop_others(self.folder, self._file)
        except OSError as error:
            self.warning = f"the result cache {os.fspath(self.folder)!r} cannot be written: {error.strerror or error}"


def _person(task: Task) -> bytes:
    """What a verdict depends on beside the bytes, as blake2b's 16 bytes of personalisation."""
    parts = (
        task.is_notebook,
        sorted(task.codes),
        task.neuron,
        None if task.lengths is None else repr(task.lengths),
        task.transformers,
        task.must_parse,
        task.path.endswith(".pyi"),
    )
    text = repr(parts)
    known = _PERSONS.get(text)
    if known is None:
        known = _PERSONS[text] = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return known


_PERSONS: dict[str, bytes] = {}


def _rules_digest() -> str:
    """Digest of what the linter's own code, libcst and Python are; by size and time of the files, as make does it."""
    package = os.path.dirname(__file__)  # noqa: PTH120 - 80 files at every start: strings are faster
    spec = find_spec("libcst")
    roots = [package, os.path.join(os.path.dirname(package), "core")]  # noqa: PTH118, PTH120
    parts = [
        repr((sys.version_info[:3], SCHEMA, __version__)),
        *(line for root in roots for line in _listing(root, is_deep=True)),
    ]
    if spec is not None and spec.origin:
        parts += _listing(os.path.dirname(spec.origin), is_deep=False)  # noqa: PTH120
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _listing(folder: str, *, is_deep: bool) -> list[str]:
    """Name, size and time of every Python file in a folder, and in those below it."""
    lines = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                mode = entry.stat()
                lines.append(f"{entry.name} {mode.st_size} {mode.st_mtime_ns}")
            elif is_deep and entry.is_dir() and entry.name != "__pycache__":
                lines += _listing(entry.path, is_deep=True)
    return lines


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        return {}
    entries = document.get("entries")
    return entries if isinstance(entries, dict) else {}


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("CACHEDIR.TAG", _TAG), (".gitignore", "# Written by shapeguard.\n*\n")):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")


def _drop_others(folder: Path, current: Path) -> None:
    """Remove all but the newest three files: other Pythons may share the folder, old rules never come back."""
    files = sorted(folder.glob("lint-*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[3:]:
        if file != current:
            file.unlink(missing_ok=True)
