"""Make the folder of a run: private, never one that is in use, and never two runs in one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shapeguard.core.errors import UsageError
from shapeguard.runs.stream import STARTED

HOME = ".shapeguard"
PRIVATE = 0o700


def make(given: Path | None, *, name: str, root: Path) -> Path:
    """Give an empty folder for a run: the one asked for, or the next free `.shapeguard/runs/NAME-N`."""
    try:
        return _given(given) if given is not None else _next(root, name)
    except OSError as error:
        where = given if given is not None else root / HOME
        reason = error.strerror or str(error)
        raise UsageError(f"cannot make the run folder {where}: {reason}", hint="give another with --run-dir") from error


def claim(folder: Path, started: Mapping[str, Any]) -> None:
    """Write down what was started; two runs cannot claim one folder."""
    text = json.dumps(started, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    try:
        with (folder / STARTED).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(f"another run has just taken {folder}", hint="give another with --run-dir") from error
    except OSError as error:
        raise UsageError(
            f"cannot write to the run folder {folder}: {error.strerror}", hint="give another with --run-dir"
        ) from error


def replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _given(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="give another with --run-dir")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"the run folder {folder} is not empty", hint="give another with --run-dir, or remove it")
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the run folder {folder} cannot be written to", hint="give another with --run-dir")
    return folder.resolve()


def _next(root: Path, name: str) -> Path:
    home = root / HOME
    home.mkdir(mode=PRIVATE, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        replace(ignore, "*\n")
    runs = home / "runs"
    runs.mkdir(mode=PRIVATE, exist_ok=True)
    number = max(_numbers(runs, name), default=0) + 1
    while True:
        folder = runs / f"{name}-{number}"
        try:
            folder.mkdir(mode=PRIVATE)
        except FileExistsError:
            number += 1  # another run has started at the same moment
            continue
        return folder.resolve()


def _numbers(runs: Path, name: str) -> Iterable[int]:
    for path in runs.iterdir():
        before, _, digits = path.name.rpartition("-")
        if before == name and digits.isdigit():
            yield int(digits)
