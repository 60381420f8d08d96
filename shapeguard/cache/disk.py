"""What diskcache stores for us: versioned bytes inside of the database, and nothing else.

diskcache pickles what it does not know (CVE-2025-69872), and opens and removes whatever file a row names. Here keys
are ids, values are a record's bytes, and a row of any other kind is refused, never loaded.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import diskcache

from shapeguard.cache.codec import is_id, schema_of
from shapeguard.core.errors import CacheError

RAW = 1
"""diskcache's mode for a value that stands in its row as it is."""
_HINT = "shapeguard cache verify --repair"


class RecordDisk(diskcache.Disk):  # type: ignore[misc]
    """Takes and gives a record's bytes; refuses pickles, files and foreign rows."""

    def put(self, key: Any) -> tuple[str, bool]:
        """Give the key as it stands in the database."""
        if not isinstance(key, str) or not is_id(key):
            raise CacheError(f"{key!r} is no id of a record")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """Give the key of a row."""
        if raw != 1 or not isinstance(key, str) or not is_id(key):
            raise CacheError("the cache holds a row whose key is not shapeguard's", hint=_HINT)
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, Any]:
        """Give the columns of a row."""
        if read or not isinstance(value, bytes):
            raise CacheError("only the bytes of a record can be stored")
        schema_of(value)
        return 0, RAW, None, sqlite3.Binary(value)

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> bytes:
        """Give the bytes of a row."""
        if mode != RAW or filename is not None or read or not isinstance(value, bytes):
            raise CacheError("the cache holds a row that shapeguard did not write", hint=_HINT)
        return value

    def filename(self, key: Any = None, value: Any = None) -> tuple[str, str]:
        """Refuse: no value lies in a file."""
        raise CacheError("the cache keeps no values in files")

    def remove(self, file_path: str) -> None:
        """Do nothing: a file that a row names is not ours."""
