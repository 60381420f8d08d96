"""`clean`: what of a NEFF folder may go, as a plan, and then the plan carried out."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shapeguard.cache.neff_folder import NeffFolder, is_held
from shapeguard.core.neffs import Layout, State, version_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is to go."""

    failed: bool = False
    locks: bool = False
    old_versions: bool = False
    everything: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One thing to remove."""

    path: Path
    reason: str
    size_bytes: int
    is_folder: bool = False
    is_lock: bool = False


def plan(folder: NeffFolder, choice: Choice) -> list[Removal]:
    """Say what would go; what a living process holds stays."""
    removals: dict[Path, Removal] = {}
    newest = _newest(folder)
    for entry in folder.entries:
        if entry.is_held:
            continue
        reason = _reason(entry.state, is_old=_is_older(entry.name.compiler, newest), choice=choice)
        if reason:
            is_folder = entry.name.layout is Layout.XLA
            removals[entry.path] = Removal(
                path=entry.path, reason=reason, size_bytes=entry.size_bytes, is_folder=is_folder
            )
    if choice.locks or choice.everything:
        for lock in folder.locks:
            if lock.is_stale and lock.path.parent not in removals:
                removals[lock.path] = Removal(
                    path=lock.path, reason="no process holds this lock", size_bytes=lock.size_bytes, is_lock=True
                )
    return list(removals.values())


def _is_older(compiler: str, newest: str) -> bool:
    return bool(compiler and newest) and version_order(compiler) < version_order(newest)


def _newest(folder: NeffFolder) -> str:
    """Give the newest compiler with something to use: one that only failed so far has replaced no other."""
    usable = (each.name.compiler for each in folder.entries if each.name.compiler and each.state is State.COMPILED)
    return max(usable, key=version_order, default="")


def _reason(state: State, *, is_old: bool, choice: Choice) -> str:
    if choice.failed and state is State.FAILED:
        return "its compile failed"
    if choice.failed and state is State.UNFINISHED:
        return "its compile was cut off"
    if choice.old_versions and is_old:
        return "it is of an older compiler"
    return "everything was asked for" if choice.everything else ""


def carry_out(removals: Iterable[Removal], *, root: Path) -> Iterator[tuple[Removal, str]]:
    """Remove what the plan names, and give each with the reason why it is still there, or an empty text."""
    for removal in removals:
        yield removal, _remove(removal)
        _remove_empty_parents(removal.path.parent, root)


def _remove(removal: Removal) -> str:
    path = removal.path
    try:
        if removal.is_lock and is_held(path):
            return "a process has taken it"
        if removal.is_folder:
            # It never follows a link, and fails on one at the top.
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _remove_empty_parents(folder: Path, root: Path) -> None:
    with contextlib.suppress(OSError):
        while folder != root and root in folder.parents:
            folder.rmdir()
            folder = folder.parent
