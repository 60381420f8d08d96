"""`pull` and `import`: what is lacking here as a plan, then the plan run; all is checked before any is to be seen."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from shapeguard.cache import codec, manifest
from shapeguard.cache.manifest import Entry, Manifest, object_name
from shapeguard.cache.named import Named
from shapeguard.cache.neff_place import Incoming, is_in_place
from shapeguard.cache.remote import Remote, gone, wrong_digest
from shapeguard.cache.select import demand_model, is_model, model_of
from shapeguard.cache.store import GraphCache
from shapeguard.cache.transfer import Progress, at_once, quiet, retried
from shapeguard.core.errors import CacheError, RemoteError
from shapeguard.core.graphs import GraphRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPlan:
    """What is to be fetched."""

    entries: tuple[Entry, ...]
    num_here: int
    """Records that are here already."""
    missing: frozenset[str] = frozenset()
    """Graphs of the lock that the remote does not have."""
    troubles: tuple[tuple[str, str], ...] = ()
    """Manifests that could not be used, with the reason."""

    @property
    def num_bytes(self) -> int:
        """Bytes to fetch, at most."""
        return sum(entry.size_bytes + (entry.neff.size_bytes if entry.neff else 0) for entry in self.entries)

    @property
    def num_neffs(self) -> int:
        """NEFFs to fetch."""
        return sum(entry.neff is not None for entry in self.entries)


def plan_pull(
    remote: Remote, cache: GraphCache, *, model: str = "", lock: Named | None = None, neff_dir: Path | None = None
) -> PullPlan:
    """Say what is to be fetched so that the records of a model or a lock are here, with their NEFFs in a folder."""
    troubles: list[tuple[str, str]] = []
    wanted: dict[str, Entry] = {}
    models: set[str] = set()
    for found in _manifests(remote, troubles):
        models.add(found.model)
        if not is_model(model, model_of(found.model)):
            continue
        for entry in found.entries:
            if lock is None or entry.graph in lock.keys:
                known = wanted.get(entry.id)
                if known is None or known.neff is None:
                    wanted[entry.id] = entry
    if not troubles:
        demand_model(model, models, where=f"in {remote.url}")
    needed = [each for entry in wanted.values() if (each := _needed(entry, cache, neff_dir)) is not None]
    there = {entry.graph for entry in wanted.values()}
    return PullPlan(
        entries=tuple(sorted(needed, key=lambda entry: entry.id)),
        num_here=len(wanted) - len(needed),
        missing=lock.keys - there if lock is not None else frozenset(),
        troubles=tuple(troubles),
    )


def _manifests(remote: Remote, troubles: list[tuple[str, str]]) -> Iterator[Manifest]:
    for name in retried(lambda: _names(remote)):
        try:
            blob = retried(partial(remote.read, name, limit=manifest.MANIFEST_BYTES))
            if blob is not None:
                yield manifest.decode(blob.data, name)
        except CacheError as error:
            said = error.message.removeprefix(f"{name} ")
            troubles.append((name, f"{said}; {error.hint or remote.mended_by}"))


def _names(remote: Remote) -> list[str]:
    found = sorted(name for name, _ in islice(remote.names("manifests/"), manifest.MOST_MANIFESTS + 1))
    if len(found) > manifest.MOST_MANIFESTS:
        raise RemoteError(f"{remote.url} holds more than {manifest.MOST_MANIFESTS} manifests", hint="use another")
    return found


def _needed(entry: Entry, cache: GraphCache, neff_dir: Path | None) -> Entry | None:
    """Give what of an entry is lacking here: all of it, the record alone, or nothing."""
    neff = entry.neff
    if neff is None or neff_dir is None or not neff.path or is_in_place(neff, neff_dir):
        return None if cache.has(entry.id) else replace(entry, neff=None)
    return entry


def pull(
    plan: PullPlan, remote: Remote, cache: GraphCache, *, neff_dir: Path | None = None, progress: Progress = quiet
) -> int:
    """Carry a plan out: fetch and check everything, put NEFFs in place, then the records. Gives how many are new."""
    if not plan.entries:
        return 0
    works: list[Callable[[], GraphRecord]] = [partial(_record, remote, entry) for entry in plan.entries]
    records = at_once(works, progress=progress)
    neffs = [entry.neff for entry in plan.entries if entry.neff is not None]
    if neffs and neff_dir is not None:
        incoming = Incoming(cache.folder)
        # The same file may stand for several graphs.
        fetches: list[Callable[[], Path]] = [partial(incoming.fetch, neff, remote) for neff in set(neffs)]
        at_once(fetches, progress=progress)
        for neff in neffs:
            incoming.place(neff, remote, neff_dir)
        incoming.forget(neffs)
    return cache.put_many(records)


def _record(remote: Remote, entry: Entry) -> GraphRecord:
    """Fetch a record and check that it is the one that the manifest names."""
    name = object_name(entry.object)
    blob = remote.read(name, limit=entry.size_bytes)
    if blob is None:
        raise gone(name, remote)
    if len(blob.data) != entry.size_bytes or hashlib.sha256(blob.data).hexdigest() != entry.object:
        raise wrong_digest(name, remote)
    record = codec.decode(blob.data)
    if record.key.id != entry.id or record.key.graph != entry.graph:
        raise RemoteError(
            f"{name} in {remote.url} is the record of another graph than its manifest says", hint=remote.mended_by
        )
    if entry.neff is not None and record.neff != entry.neff:
        raise RemoteError(f"{name} in {remote.url} has another NEFF than its manifest says", hint=remote.mended_by)
    return codec.shared(record)
