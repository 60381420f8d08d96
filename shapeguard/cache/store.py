"""The graph cache: records of compiled graphs by their id, in a diskcache that many processes use at once."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import diskcache

from shapeguard.cache import codec
from shapeguard.cache.border import border
from shapeguard.cache.join import join
from shapeguard.cache.location import prepare
from shapeguard.cache.opening import opened, opened_for_reading
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphRecord

SIZE_LIMIT = 1 << 30
"""Bytes of the database at which those records go that were not used for longest."""
_CHUNK = 500
_REPAIR = "shapeguard cache verify --repair"
_EVERY = 256
"""Uses and puts between two writes of last uses, and two looks at the size."""
_GRAIN_S = 60.0
"""A use so soon after the last one known is not written down: that would cost as much as the reading."""
PATIENCE_S = 120.0
"""How long a writer waits for others before it gives up."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What the cache holds and how it was used."""

    records: int
    hits: int
    misses: int
    size_bytes: int


class GraphCache:
    """Records of compiled graphs; a record that `put` returned from is there for every other process."""

    def __init__(
        self,
        folder: Path,
        *,
        for_reading: bool = False,
        size_limit: int = SIZE_LIMIT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the cache, and make it where there is none; `for_reading` does with one that cannot be written to."""
        self.folder = folder
        self.size_limit = size_limit
        self._clock = clock
        self._used: dict[str, None] = {}
        self._hits = self._misses = self._puts = 0
        self.skipped: dict[str, str] = {}
        """Rows that `records` passed over, with what is wrong with each."""
        with border(folder):
            store = prepare(folder, for_reading=for_reading).resolve()
            self._rows = opened_for_reading(store) if for_reading else opened(store)

    def __enter__(self) -> GraphCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Write down what was used last and let go of the database."""
        self._flush()
        self._rows.close()

    def get(self, id: str) -> GraphRecord | None:
        """Give a record, or None; `CacheError` where something else stands in its place."""
        with border(self.folder):
            found = self._rows.value(id)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        data, used = found
        if not isinstance(used, float) or abs(self._clock() - used) >= _GRAIN_S:
            self._used[id] = None
        if len(self._used) >= _EVERY:
            self._flush()
        return _record(id, data)

    def has(self, id: str) -> bool:
        """Whether a record is here; counts as no use of it."""
        with border(self.folder):
            return id in self._rows

    def put(self, record: GraphRecord) -> GraphRecord:
        """Keep a record, joined with what is known of the graph already, and give the result."""
        joined = self._in_transaction(lambda: self._put(record, is_use=False))
        self._look_at_size()
        return joined

    def put_many(self, records: Iterable[GraphRecord], *, is_use: bool = False) -> int:
        """Keep many, in transactions of some hundred each; `is_use`: a run needed them. Gives how many were new."""
        num_new = 0
        chunk: list[GraphRecord] = []
        for record in records:
            chunk.append(record)
            if len(chunk) == _CHUNK:
                num_new += self._put_chunk(chunk, is_use=is_use)
                chunk = []
        num_new += self._put_chunk(chunk, is_use=is_use)
        self._puts = _EVERY
        self._look_at_size()
        return num_new

    def records(self, model: str = "", *, eager: bool = False) -> Iterator[GraphRecord]:
        """Give the records of models whose key begins so, graphs of regions or else eager operators.

        A row that is none is passed over and noted in `skipped`, so that one does not hide the others.
        """
        with border(self.folder):
            for id, *rest in self._rows.values(prefix(model, eager=eager)):
                try:
                    if isinstance(rest[0], CacheError):
                        raise rest[0]
                    record = _record(id, rest[0])
                except CacheError as error:
                    self.skipped[id] = error.message.removeprefix(f"{id}: ")
                    continue
                yield replace(record, last_seen=_when(rest[1]) or record.last_seen)

    def models(self, *, eager: bool = False) -> dict[str, int]:
        """Give the models with how many records each has."""
        with border(self.folder):
            start = prefix("", eager=eager)
            return {tag[len(start) :]: num for tag, num in self._rows.tags(start)}

    def ids(self, beginning: str) -> list[str]:
        """Give the ids that begin so, a hundred at most."""
        with border(self.folder):
            return self._rows.ids(beginning)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove records; gives how many there were."""
        wanted = list(ids)
        return sum(self._in_transaction(lambda: [bool(self._rows.delete(id)) for id in wanted]))

    def ages(self) -> list[tuple[str, float, int]]:
        """Give id, last use and size of all records, those not used for longest first."""
        self._flush()
        with border(self.folder):
            found = self._rows.oldest()
            return [(id, _when(used), size) for _, id, used, size in found if isinstance(id, str) and codec.is_id(id)]

    def statistics(self) -> Statistics:
        """Give figures; uses of this process count too."""
        self._flush()
        with border(self.folder):
            found = self._rows.figures()
            return Statistics(
                records=found["count"], hits=found["hits"], misses=found["misses"], size_bytes=self._rows.volume()
            )

    def _put_chunk(self, chunk: list[GraphRecord], *, is_use: bool) -> int:
        if not chunk:
            return 0
        before = len(self._rows)
        self._in_transaction(lambda: [self._put(record, is_use=is_use) for record in chunk])
        return max(0, len(self._rows) - before)

    def _put(self, record: GraphRecord, *, is_use: bool) -> GraphRecord:
        """Read, join and write one record inside of a transaction."""
        now = int(self._clock())
        id = record.key.id
        record = replace(record, first_seen=record.first_seen or now, last_seen=record.last_seen or now)
        known = self._known(id)
        if known is not None:
            record = join(known, record)
            if is_use:
                record = replace(record, hits=record.hits + 1)
        if known != record:
            self._rows.set(id, codec.encode(record), tag=tag(record))
        self._puts += 1
        return record

    def _known(self, id: str) -> GraphRecord | None:
        found = self._rows.value(id)
        if found is None:
            return None
        try:
            return _record(id, found[0])
        except codec.NewerSchemaError:
            raise
        except CacheError:
            return None  # a damaged row is written anew

    def _in_transaction(self, work: Callable[[], Result]) -> Result:
        """Run work in one transaction; waits for other writers, and says why where none can begin."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with border(self.folder):
                try:
                    with self._rows.transact():
                        return work()
                except diskcache.Timeout:
                    reason = self._rows.why_busy()
                    if reason and (reason != "database is locked" or time.monotonic() > deadline):
                        raise sqlite3.OperationalError(reason) from None

    def _flush(self) -> None:
        """Write down last uses and statistics; they are not worth an error."""
        used, hits, misses = self._used, self._hits, self._misses
        if not (used or hits or misses):
            return
        self._used, self._hits, self._misses = {}, 0, 0
        with contextlib.suppress(sqlite3.Error, diskcache.Timeout):
            self._rows.touch_all(used, self._clock())
            self._rows.add_statistics(hits, misses)

    def _look_at_size(self) -> None:
        """Let the records go that were not used for longest, where there are too many bytes."""
        if self._puts < _EVERY:
            return
        self._puts = 0
        with border(self.folder):
            volume = self._rows.volume()
            if volume <= self.size_limit:
                return
            self._flush()
            rowids = [rowid for rowid, _, _, _ in self._rows.oldest()]
            # A tenth more than has to go, so that not every put has to do this.
            share = 1 - 0.9 * self.size_limit / volume
            self._rows.remove(rowids[: math.ceil(len(rowids) * share)])


def prefix(model: str, *, eager: bool) -> str:
    """Give the beginning of the tags of a model's records."""
    return f"{'eager' if eager else 'graph'}/{model}"


def tag(record: GraphRecord) -> str:
    """Give what a record is indexed by."""
    return prefix(str(record.model), eager=record.is_eager)


def _record(id: str, data: bytes) -> GraphRecord:
    try:
        record = codec.decode(data)
    except codec.NewerSchemaError:
        raise
    except CacheError as error:
        raise CacheError(f"{id}: {error.message}", hint=_REPAIR) from error
    if record.key.id != id:
        raise CacheError(f"the record at {id} is of another graph", hint=_REPAIR)
    return record


def _when(used: object) -> int:
    """Give a last use as whole seconds; 0 where something else stands there."""
    return int(used) if isinstance(used, (int, float)) and 0 < used < 1 << 40 else 0
