"""`lock merge`: git's merge driver for the lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from shapeguard.checks.budget import Row, rows
from shapeguard.checks.settings import JobSettings
from shapeguard.core.errors import LockError
from shapeguard.lock.merge import merge
from shapeguard.lock.read import parse
from shapeguard.lock.values import Lock, LockedGraph

SIDES = ("this branch", "the other branch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A merged lock, and the limits that it passes and neither branch does alone."""

    lock: Lock
    over: tuple[str, ...] = ()


def merged(files: Sequence[Path], jobs: Mapping[str, JobSettings], *, name: str) -> Merged:
    """Merge base, ours and theirs, and count again; `name` is the file's in the repository, as errors call it."""
    owners = ("the common base", *SIDES)
    base, ours, theirs = (_read(path, f"{name} of {owner}") for path, owner in zip(files, owners, strict=True))
    found = merge(base, ours, theirs)
    over = [
        _sentence(row, found, base, (ours, theirs))
        for name, settings in jobs.items()
        if name in found.jobs
        for row in rows(name, settings, found, locked=base, today=date.today())
        if row.is_over and row.level == "error"
    ]
    return Merged(lock=found, over=tuple(over))


def _read(path: Path, name: str) -> Lock:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LockError(f"cannot read {name} ({path}): {error.strerror or error}") from error
    # git gives an empty base where both branches made the file.
    return parse(data, name=name) if data.strip() else Lock()


def _sentence(row: Row, found: Lock, base: Lock, sides: tuple[Lock, Lock]) -> str:
    added = []
    for graph in found.of(row.job).values():
        if graph.id not in base.of(row.job) and str(graph) in row.counted:
            added.append(f"{graph} (from {_side(graph, row.job, sides)})")
    more = f" and {len(added) - 10} more" if len(added) > 10 else ""
    new = f": new are {'; '.join(added[:10])}{more}" if added else ""
    return f"{row.job} {row.name}: {row.now:g} after the merge, the limit is {row.limit:g}{new}"


def _side(graph: LockedGraph, job: str, sides: tuple[Lock, Lock]) -> str:
    names = [name for name, side in zip(SIDES, sides, strict=True) if graph.id in side.of(job)]
    return " and ".join(names)
