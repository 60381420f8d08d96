"""All that is used of diskcache's insides: its tables, its connection, its settings. Tried with 5.6.3.

Also the look at a database before diskcache opens it, since diskcache believes its settings: it takes each as an
attribute or a PRAGMA.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import diskcache
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA

from shapeguard.cache.codec import MAX_BYTES
from shapeguard.cache.disk import RecordDisk
from shapeguard.cache.location import plain_file
from shapeguard.core.errors import CacheError

DATABASE: str = DBNAME
"""Name of the file in the folder of records."""
TIMEOUT_S = 30.0
"""How long a writer waits for another."""
SETTINGS = {
    **DEFAULT_SETTINGS,
    # Reading would write the time into every row it reads; we note last uses ourselves, many at once.
    "eviction_policy": "none",
    "cull_limit": 0,
    "tag_index": 1,
    "size_limit": 1 << 40,
}
_OBJECTS = {"table": ("Settings", "Cache"), "index": ("Cache_", "sqlite_autoindex_"), "trigger": ("Settings_",)}
_REPAIR = "shapeguard cache verify --repair"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as it stands in the database, whatever is in it."""

    rowid: int
    key: Any
    raw: Any
    tag: Any
    mode: Any
    filename: Any
    size: int
    """Bytes of the value."""
    used: float
    value: Any = None


class Rows(diskcache.Cache):  # type: ignore[misc]
    """diskcache's cache, and the queries it does not offer."""

    def __init__(self, folder: Path, *, timeout: float = TIMEOUT_S) -> None:
        vet(folder)
        if os.path.expandvars(folder) != str(folder):
            # diskcache would open another folder than the one that was looked at.
            raise CacheError(f"the cache folder {folder} names a variable", hint="give it by its real name")
        super().__init__(str(folder), timeout=timeout, disk=RecordDisk, **SETTINGS)

    @property
    def _con(self) -> sqlite3.Connection:
        local = self._local
        known: sqlite3.Connection | None = getattr(local, "con", None)
        if known is not None and local.pid == os.getpid():
            return known
        con: sqlite3.Connection = super()._con
        return limited(con)

    def run(self, query: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement on this thread's connection."""
        return self._con.execute(query, parameters)

    def value(self, id: str) -> tuple[bytes, Any] | None:
        """Give a row's bytes and its last use, or None: diskcache's `get` without what is never used of it here."""
        query = "SELECT mode, filename, value, access_time FROM Cache WHERE key = ? AND raw = 1"
        row = self._con.execute(query, self._disk.put(id)[:1]).fetchone()
        if row is None:
            return None
        mode, filename, value, used = row
        return self._disk.fetch(mode, filename, value, False), used

    def values(self, prefix: str) -> Iterator[tuple[str, bytes, Any] | tuple[str, CacheError]]:
        """Give id, bytes and last use of the rows whose tag begins so, by tag, or what is wrong with one."""
        columns = "key, raw, mode, filename, value, access_time"
        query = f"SELECT {columns} FROM Cache WHERE tag >= ? AND tag < ? ORDER BY tag, key"
        for key, raw, mode, filename, value, used in self.run(query, (prefix, prefix + "\U0010ffff")):
            disk = self._disk
            try:
                yield disk.get(key, raw), disk.fetch(mode, filename, value, False), used
            except CacheError as error:
                yield str(key)[:40], error

    def tags(self, prefix: str) -> list[tuple[str, int]]:
        """Give the tags that begin so with how many rows have each."""
        query = "SELECT tag, COUNT(*) FROM Cache WHERE tag >= ? AND tag < ? GROUP BY tag ORDER BY tag"
        return [(str(tag), num) for tag, num in self.run(query, (prefix, prefix + "\U0010ffff"))]

    def ids(self, prefix: str) -> list[str]:
        """Give the ids that begin so."""
        query = "SELECT key FROM Cache WHERE key >= ? AND key < ? AND raw = 1 ORDER BY key LIMIT 100"
        return [str(key) for (key,) in self.run(query, (prefix, prefix + "g"))]

    def every(self) -> Iterator[Row]:
        """Give every row without its value, one query, for a check."""
        size_of = "COALESCE(LENGTH(value), 0)"
        query = f"SELECT rowid, key, raw, tag, mode, filename, {size_of}, access_time FROM Cache"
        for rowid, key, raw, tag, mode, filename, size, used in self.run(query).fetchall():
            yield Row(rowid=rowid, key=key, raw=raw, tag=tag, mode=mode, filename=filename, size=size, used=used or 0.0)

    def value_of(self, rowid: int) -> Any:
        """Give the value of one row."""
        found = self.run("SELECT value FROM Cache WHERE rowid = ?", (rowid,)).fetchone()
        return found[0] if found else None

    def touch_all(self, ids: Iterable[str], now: float) -> None:
        """Note that rows were used."""
        query = "UPDATE Cache SET access_time = ?, access_count = access_count + 1 WHERE key = ? AND raw = 1"
        with self.transact():
            self._con.executemany(query, [(now, each) for each in sorted(ids)])

    def add_statistics(self, hits: int, misses: int) -> None:
        """Add to what diskcache counts hits and misses in."""
        with self.transact():
            self.run("UPDATE Settings SET value = value + ? WHERE key = 'hits'", (hits,))
            self.run("UPDATE Settings SET value = value + ? WHERE key = 'misses'", (misses,))

    def figures(self) -> dict[str, int]:
        """Give count of rows, hits and misses."""
        found = dict(self.run("SELECT key, value FROM Settings WHERE key IN ('hits', 'misses', 'count')").fetchall())
        return {name: int(found.get(name) or 0) for name in ("count", "hits", "misses")}

    def remove(self, rowids: Iterable[int]) -> None:
        """Delete rows in one transaction."""
        with self.transact():
            self._con.executemany("DELETE FROM Cache WHERE rowid = ?", [(each,) for each in rowids])

    def oldest(self) -> Iterator[tuple[int, str, float, int]]:
        """Give rowid, id, last use and size of the rows, those not used for longest first."""
        size_of = "COALESCE(LENGTH(value), 0)"
        query = f"SELECT rowid, key, COALESCE(access_time, 0.0), {size_of} FROM Cache ORDER BY access_time, rowid"
        return iter(self.run(query).fetchall())

    def retag(self, pairs: Iterable[tuple[int, str]]) -> None:
        """Index rows anew."""
        with self.transact():
            self._con.executemany("UPDATE Cache SET tag = ? WHERE rowid = ?", [(tag, rowid) for rowid, tag in pairs])

    def damages(self) -> list[str]:
        """Say what SQLite finds wrong with its file."""
        return [str(text) for (text,) in self.run("PRAGMA integrity_check(20)").fetchall() if text != "ok"]

    def mend_counts(self) -> bool:
        """Set the count of rows right; whether it was wrong."""
        with self.transact():
            (true,) = self.run("SELECT COUNT(*) FROM Cache").fetchone()
            found = dict(self.run("SELECT key, value FROM Settings WHERE key IN ('count', 'size')").fetchall())
            if found == {"count": true, "size": 0}:
                return False
            self.run("UPDATE Settings SET value = ? WHERE key = 'count'", (true,))
            self.run("UPDATE Settings SET value = 0 WHERE key = 'size'")
        return True

    def counts_are_right(self) -> bool:
        """Whether diskcache's own counts agree with the rows."""
        (true,) = self.run("SELECT COUNT(*) FROM Cache").fetchone()
        found = dict(self.run("SELECT key, value FROM Settings WHERE key IN ('count', 'size')").fetchall())
        return found == {"count": true, "size": 0}

    def why_busy(self) -> str:
        """Give SQLite's reason where a transaction did not begin: diskcache keeps it to itself; empty if it would."""
        try:
            self.run("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return str(error)
        self.run("ROLLBACK")
        return ""


def limited(con: sqlite3.Connection) -> sqlite3.Connection:
    """Set a connection's limits: a row larger than any of ours is an error and not a full memory."""
    con.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * MAX_BYTES)
    con.execute("PRAGMA trusted_schema = OFF")
    return con


def vet(folder: Path, mode: str = "mode=rw") -> None:
    """Look at a database before it is opened for good; `CacheError` where it is not one that diskcache made for us."""
    there = [plain_file(folder / f"{DATABASE}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    if not there[0] or (folder / DATABASE).stat().st_size == 0:
        return
    con = sqlite3.connect(f"file:{quote(str(folder / DATABASE))}?{mode}", uri=True, timeout=TIMEOUT_S)
    try:
        limited(con)
        _vet_objects(con.execute("SELECT type, name, sql FROM sqlite_master").fetchall())
        if con.execute("SELECT 1 FROM sqlite_master WHERE name = 'Settings'").fetchone():
            _vet_settings(con.execute("SELECT key, value FROM Settings").fetchall())
        if mode == "mode=rw":
            # diskcache writes as it opens, and waits for other writers without a limit that could be set.
            con.execute("BEGIN IMMEDIATE")
            con.execute("ROLLBACK")
    finally:
        con.close()


def _vet_objects(rows: Sequence[tuple[str, str, str | None]]) -> None:
    for kind, name, sql in rows:
        is_ours = any(str(name).startswith(known) for known in _OBJECTS.get(kind, ()))
        if not is_ours or "VIRTUAL" in (sql or "").upper().split("(")[0]:
            raise CacheError(
                f"the cache's database holds a {kind} {name!r}, which shapeguard did not make", hint=_REPAIR
            )


def _vet_settings(rows: Sequence[tuple[Any, Any]]) -> None:
    for key, value in rows:
        if key not in DEFAULT_SETTINGS and key not in METADATA:
            raise CacheError(f"the cache's settings hold {key!r}, which shapeguard did not set", hint=_REPAIR)
        if key in METADATA and not isinstance(value, int):
            raise CacheError(f"the cache's settings hold {value!r} as {key}", hint=_REPAIR)
