"""NEFFs and records together: which compiled file is which graph's, and whether it is the one that was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shapeguard.cache.neff_folder import Entry, NeffFolder, digest_of
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphRecord, Neff
from shapeguard.core.neffs import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A compiled file with the record of its graph."""

    entry: Entry
    record: GraphRecord | None = None
    trouble: str = ""
    """Why the file is not the one that was recorded."""


def link(folder: NeffFolder, records: Iterable[GraphRecord], *, verify: bool = False) -> list[Linked]:
    """Find each file's record by the stack's own key or by its place; `verify` compares sizes and digests too."""
    by_key: dict[str, GraphRecord] = {}
    for record in records:
        for key in (record.persistent_key, record.neff.path if record.neff else ""):
            if key:
                by_key[key] = record
    linked = []
    for entry in folder.entries:
        place = entry.neff.relative_to(folder.root).as_posix()
        found = by_key.get(entry.name.key) or by_key.get(place)
        trouble = _trouble(entry, found.neff) if verify and found and found.neff else ""
        linked.append(Linked(entry=entry, record=found, trouble=trouble))
    return linked


def _trouble(entry: Entry, neff: Neff) -> str:
    if entry.state is not State.COMPILED:
        return f"its compile is {entry.state}, the record has a file of it"
    try:
        size = entry.neff.lstat().st_size
        if size != neff.size_bytes:
            return f"it has {size} bytes, the record says {neff.size_bytes}"
        return "" if digest_of(entry.neff) == neff.digest else "its digest is not the recorded one"
    except (OSError, CacheError) as error:
        return str(error)


def with_neffs(folder: NeffFolder, linked: Sequence[Linked]) -> list[GraphRecord]:
    """Give the records of compiled files that did not know their file yet, with it."""
    found = []
    for each in linked:
        if each.record is None or each.record.neff is not None or each.entry.state is not State.COMPILED:
            continue
        path = each.entry.neff
        neff = Neff(
            digest=digest_of(path), size_bytes=path.stat().st_size, path=path.relative_to(folder.root).as_posix()
        )
        found.append(replace(each.record, neff=neff))
    return found
