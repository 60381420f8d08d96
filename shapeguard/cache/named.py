"""The graphs that a lock file names: what is pushed, pulled and kept for a deploy."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shapeguard.core.errors import LockError

_KEY = re.compile(r"(?:^|[\s:=])([0-9a-f]{32,64})(?:$|[\s,;])")
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a lock file names."""

    keys: frozenset[str]
    """Keys of graphs."""
    digest: str
    """SHA-256 of what the file says, whatever its line ends and comments."""


def named(path: Path) -> Named:
    """Give the keys of all graphs in a lock: every text in it that is a digest, or that holds one as a word."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise LockError(f"{path} is too large for a lock")
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LockError(f"cannot read {path}: {error.strerror or error}", hint="`shapeguard lock` writes it") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise LockError(f"{path} is no lock: {error}", hint="`shapeguard lock` writes it anew") from error
    keys = frozenset(key for text in _texts(table) for key in _KEY.findall(text))
    if not keys:
        raise LockError(f"{path} names no graph", hint="`shapeguard lock` writes it")
    return Named(keys=keys, digest=hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
