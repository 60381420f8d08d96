"""Tells files in which no rule can speak, without libcst and all else that a finding needs: most files of a commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shapeguard.lint.checker import Checker
from shapeguard.lint.files import Source, Walk
from shapeguard.lint.scope import ScopeFor
from shapeguard.lint.task import Task
from shapeguard.lint.text import UnreadableError, decode
from shapeguard.lint.visit import SourceError

FEW_BYTES = 100_000
"""This much is looked through for words sooner than a process has started."""


def num_clean(files: Sequence[Path], scope_for: ScopeFor) -> int | None:
    """Give the number of these files if all of them plainly are clean; None where only a whole run can tell."""
    walk = Walk(scope_for)
    sources = walk.collect(files)
    if not sources or walk.problems or sum(source.size for source in sources) >= FEW_BYTES:
        return None
    are_clean = all(plainly_clean(source, source.task(fix="off", must_parse=True)) for source in sources)
    return len(sources) if are_clean else None


def plainly_clean(source: Source, task: Task) -> bool:
    """Whether the file holds no word that a rule waits for, and no suppression."""
    if task.is_notebook:
        return False
    try:
        return Checker(task, {}).is_plainly_clean(decode(source.file.read_bytes()).text)
    except (OSError, UnreadableError, SourceError):
        return False


def nothing_found(num_files: int, aside: str = "") -> str:
    """Say so."""
    return f"No findings in {num_files:,} file{'' if num_files == 1 else 's'}{aside}."
