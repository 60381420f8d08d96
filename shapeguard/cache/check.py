"""`verify`: is every row a record that can be read and found, and if not, mend what can be mended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapeguard.cache import codec
from shapeguard.cache.border import UnavailableError, border
from shapeguard.cache.carve import carved
from shapeguard.cache.disk import RAW
from shapeguard.cache.insides import DATABASE, Row, Rows
from shapeguard.cache.location import prepare
from shapeguard.cache.opening import opened, opened_for_reading
from shapeguard.cache.store import GraphCache, tag
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphRecord

_FILES = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something wrong with the store, and what was done about it."""

    where: str
    message: str
    mended: str = ""
    """What was done; empty where nothing was."""
    is_note: bool = False
    """Nothing is broken: a record of a newer shapeguard."""


def check(folder: Path, *, repair: bool = False) -> list[Trouble]:
    """Look at every row of the cache; with `repair`, mend it so that a second look finds nothing.

    Raises `UnavailableError` where another process holds it or it cannot be written: it may be whole, so it stays.
    """
    store = prepare(folder, for_reading=not repair).resolve()
    try:
        with border(folder):
            rows = opened(store) if repair else opened_for_reading(store)
    except UnavailableError:
        raise
    except CacheError as error:
        if repair:
            return [_replaced(folder, store, error.message)]
        return [Trouble(where=DATABASE, message=error.message)]
    try:
        with border(folder):
            broken = rows.damages()
            if not broken:
                return _rows(rows, repair=repair)
    except UnavailableError:
        raise
    except CacheError as error:
        broken = [error.message]
    finally:
        rows.close()
    if repair:
        return [_replaced(folder, store, broken[0])]
    return [Trouble(where=DATABASE, message=f"the database is damaged: {text}") for text in broken]


def _rows(rows: Rows, *, repair: bool) -> list[Trouble]:
    found = []
    bad = []
    moved: list[tuple[int, str]] = []
    for row in rows.every():
        trouble, right_tag = _judged(rows, row)
        if trouble is None:
            continue
        if right_tag:
            moved.append((row.rowid, right_tag))
        elif not trouble.is_note:
            bad.append(row.rowid)
        done = "" if trouble.is_note or not repair else "indexed anew" if right_tag else "removed"
        found.append(Trouble(where=trouble.where, message=trouble.message, mended=done, is_note=trouble.is_note))
    if repair:
        rows.remove(bad)
        rows.retag(moved)
    if not rows.counts_are_right():
        mended = "counted anew" if repair and rows.mend_counts() else ""
        found.append(Trouble(where="counts", message="the number of records it states is wrong", mended=mended))
    return found


def _judged(rows: Rows, row: Row) -> tuple[Trouble | None, str]:
    """Judge one row: what is wrong with it, and the tag it should have if that is all."""
    where = str(row.key)[:40] if isinstance(row.key, str) else f"row {row.rowid}"

    def trouble(message: str, *, is_note: bool = False) -> Trouble:
        return Trouble(where=where, message=message, is_note=is_note)

    if row.raw != 1 or not isinstance(row.key, str) or not codec.is_id(row.key):
        return trouble("its key is not one that shapeguard writes; it was not read"), ""
    if row.mode != RAW or row.filename is not None:
        kind = "a pickle" if row.mode == 4 else "a value of another kind"
        return trouble(f"it holds {kind}, which shapeguard never writes; it was not read"), ""
    if row.size > codec.MAX_BYTES:
        return trouble(f"it has {row.size} bytes, more than any record"), ""
    value = rows.value_of(row.rowid)
    try:
        record = _record(row.key, value)
    except codec.NewerSchemaError as error:
        return trouble(error.message, is_note=True), ""
    except CacheError as error:
        return trouble(error.message), ""
    if row.tag != tag(record):
        return trouble("it is indexed under another model"), tag(record)
    return None, ""


def _record(key: str, value: Any) -> GraphRecord:
    if not isinstance(value, bytes):
        raise CacheError("its value is no bytes")
    record = codec.decode(value)
    if record.key.id != key:
        raise CacheError("it is the record of another graph")
    return record


def _replaced(folder: Path, store: Path, reason: str) -> Trouble:
    """Save the records that can be read into a new database, and set the broken one aside."""
    with border(folder):
        aside = _aside(store)
        for suffix in _FILES:
            path = store / f"{DATABASE}{suffix}"
            if os.path.lexists(path):
                path.rename(aside / path.name)
    with GraphCache(folder) as cache:
        num_saved = cache.put_many(_salvaged(aside / DATABASE))
    done = f"{num_saved} records saved into a new one, the old one is in {aside.name}"
    return Trouble(where=DATABASE, message=reason, mended=done)


def _aside(store: Path) -> Path:
    number = 1
    while True:
        aside = store / f"broken-{number}"
        try:
            aside.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
            continue
        return aside


def _salvaged(database: Path) -> Iterator[GraphRecord]:
    for key, value in carved(database):
        with contextlib.suppress(CacheError):
            yield _record(key, value)
