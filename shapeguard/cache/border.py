"""The border to SQLite, diskcache and the file system: what they raise becomes one clear line."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import diskcache

from shapeguard.core.errors import CacheError


class UnavailableError(CacheError):
    """The store cannot be used now, by this process: that says nothing of what is in it, so nothing is to be mended."""


@contextlib.contextmanager
def border(folder: Path) -> Iterator[None]:
    """Turn what SQLite, diskcache and the file system raise into a `CacheError` with the reason and the next step."""
    try:
        yield
    except diskcache.Timeout as error:
        raise UnavailableError(f"the cache in {folder} is held by another process") from error
    except sqlite3.Error as error:
        raise _explained(folder, str(error)) from error
    except OSError as error:
        known = _explained(folder, error.strerror or str(error))
        raise UnavailableError(known.message, hint=known.hint) from error


_UNAVAILABLE = ("full", "readonly", "unable to open", "is locked", "locking protocol")
_HINTS = (
    ("full", "the disk is full", "free some space, or `shapeguard cache prune --max-size 100M`"),
    ("readonly", "it cannot be written to", "give another folder with SHAPEGUARD_CACHE_DIR"),
    ("unable to open", "it cannot be opened or written to", "give another folder with SHAPEGUARD_CACHE_DIR"),
    ("malformed", "its database is damaged", "shapeguard cache verify --repair"),
    ("not a database", "its database is damaged", "shapeguard cache verify --repair"),
    ("too big", "a row of it is larger than any record", "shapeguard cache verify --repair"),
    ("no such", "its database is not one of shapeguard's", "shapeguard cache verify --repair"),
    ("no column", "its database is not one of shapeguard's", "shapeguard cache verify --repair"),
    ("is locked", "another process holds it", "wait for it to end, or set SHAPEGUARD_NO_CACHE=1"),
    ("locking protocol", "its file system has no locks", "use a folder on a local disk: SHAPEGUARD_CACHE_DIR"),
    ("disk I/O", "its file system failed or has no locks", "use a folder on a local disk: SHAPEGUARD_CACHE_DIR"),
)


def _explained(folder: Path, reason: str) -> CacheError:
    for mark, meaning, hint in _HINTS:
        if mark in reason:
            kind = UnavailableError if mark in _UNAVAILABLE else CacheError
            return kind(f"cannot use the cache in {folder}: {meaning} ({reason})", hint=hint)
    return CacheError(f"cannot use the cache in {folder}: {reason}", hint="set SHAPEGUARD_NO_CACHE=1 to do without")
