"""What to forget: a pure choice over ids, last uses and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from shapeguard.cache.named import named
from shapeguard.cache.store import GraphCache


def excess(
    ages: Sequence[tuple[str, float, int]],
    *,
    before: float | None = None,
    kept: frozenset[str] | None = None,
    max_bytes: int | None = None,
) -> frozenset[str]:
    """Give the ids to forget, of records (id, last use, bytes), those not used for longest first.

    `kept`: ids that stay; given alone, all others go, else it only protects them.
    """
    stay = kept or frozenset()
    others = [row for row in ages if row[0] not in stay]
    if before is None and max_bytes is None:
        return frozenset(id for id, _, _ in others) if kept is not None else frozenset()
    gone = {id for id, used, _ in others if before is not None and used < before}
    if max_bytes is not None:
        left = sum(size for id, _, size in ages if id not in gone)
        for id, _, size in others:
            if left <= max_bytes:
                break
            if id not in gone:
                gone.add(id)
                left -= size
    return frozenset(gone)


def graphs_of(cache: GraphCache, locks: Iterable[Path]) -> frozenset[str]:
    """Give the ids of the records whose graphs the locks name."""
    keys = frozenset[str]().union(*(named(lock).keys for lock in locks))
    found = set()
    for eager in (False, True):
        found |= {record.key.id for record in cache.records(eager=eager) if record.key.graph in keys}
    return frozenset(found)
