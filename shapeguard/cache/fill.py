"""Filling the cache from a run that has ended: a cache that fails costs a line, never the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shapeguard.cache import codec
from shapeguard.cache.store import GraphCache
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphRecord


def fill(records: Sequence[GraphRecord], folder: Path) -> str:
    """Keep the records of a run; gives the line to say where that failed, else an empty text."""
    kept, refused = _readable(records)
    try:
        if kept:
            with GraphCache(folder) as cache:
                cache.put_many(kept, is_use=True)
    except CacheError as error:
        return f"note: the graph cache was not filled: {error}"
    if refused:
        return f"note: the graph cache keeps {len(kept)} of {len(records)} graphs: {refused}"
    return ""


def _readable(records: Sequence[GraphRecord]) -> tuple[list[GraphRecord], str]:
    """Give the records that the cache takes, and what is wrong with the first of the others: one costs no other."""
    kept, refused = [], ""
    for record in records:
        try:
            codec.encode(record)
            kept.append(record)
        except CacheError as error:
            refused = refused or error.message
    return kept, refused


def known(records: Sequence[GraphRecord], folder: Path) -> dict[str, str]:
    """Give what a report can add to a graph, by its key: `known: 312 s on trn2`; empty where the cache fails."""
    found = {}
    try:
        with GraphCache(folder, for_reading=True) as cache:
            for record in records:
                before = cache.get(record.key.id)
                if before is not None:
                    seconds = f": {before.compile_s:.0f} s on {before.key.target}" if before.compile_s else ""
                    found[record.key.graph] = f"known{seconds}"
    except CacheError:
        return {}
    return found
