"""A manifest: which objects make up the records of one model, toolchain and lock. Untrusted until decoded here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from shapeguard.cache.codec import MAX_BYTES, is_id, is_sha256
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphRecord, Neff
from shapeguard.core.neffs import name_of

SCHEMA = 1
MANIFEST_BYTES = 64 << 20
NEFF_BYTES = 16 << 30
MOST_ENTRIES = 200_000
MOST_MANIFESTS = 100_000
_NOT_TOOLCHAIN = frozenset({"shapeguard"})


class ManifestError(CacheError):
    """A manifest that cannot be used; the others of a remote can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record, by the object that holds it."""

    id: str
    graph: str
    """Key of the graph, which locks name."""
    object: str
    """SHA-256 of the record's bytes."""
    size_bytes: int
    neff: Neff | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that is there for one model, toolchain and lock."""

    schema: int = SCHEMA
    model: str = ""
    toolchain: Mapping[str, str] = field(default_factory=dict)
    lock: str = ""
    """Digest of the lock whose graphs these are; empty: whatever was there."""
    entries: tuple[Entry, ...] = ()

    @property
    def name(self) -> str:
        """Name in a remote: the same for the same model, toolchain and lock."""
        slug = re.sub(r"[^0-9A-Za-z._]+", "-", self.model.partition("@")[0]).strip("-._")[:80] or "no-model"
        slug = re.sub(r"\.{2,}", ".", slug)
        toolchain = "".join(f"{name}={version}\n" for name, version in sorted(self.toolchain.items()))
        lock = self.lock[:12] or "all"
        return f"manifests/{slug}-{_digest(self.model)}/{_digest(toolchain)}-{lock}.json"


def object_name(digest: str) -> str:
    """Give the name of an object in a remote."""
    return f"objects/{digest[:2]}/{digest}"


def toolchain_of(record: GraphRecord) -> dict[str, str]:
    """Give the versions that records must share to stand in one manifest."""
    return {name: version for name, version in sorted(record.versions.items()) if name not in _NOT_TOOLCHAIN}


def encode(manifest: Manifest) -> bytes:
    """Give the bytes of a manifest: sorted, so that equal ones are equal bytes."""
    ordered = replace(manifest, entries=tuple(sorted(manifest.entries, key=lambda entry: entry.id)))
    return msgspec.json.format(msgspec.json.encode(ordered, order="sorted"), indent=1) + b"\n"


def decode(data: bytes, name: str) -> Manifest:
    """Give the manifest that bytes stand for; `ManifestError` says what is wrong with others."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(f"{name} cannot be read: {error}") from error
    if manifest.schema != SCHEMA:
        raise ManifestError(
            f"{name} has schema {manifest.schema}, this shapeguard reads {SCHEMA}", hint="update shapeguard"
        )
    if len(manifest.entries) > MOST_ENTRIES:
        raise ManifestError(f"{name} lists {len(manifest.entries)} records, more than {MOST_ENTRIES}")
    for entry in manifest.entries:
        _check(entry, name)
    if manifest.name != name:
        raise ManifestError(f"{name} holds the manifest of {manifest.name}")
    return manifest


def _check(entry: Entry, name: str) -> None:
    if not is_id(entry.id) or not is_sha256(entry.object) or not 0 < entry.size_bytes <= MAX_BYTES:
        raise ManifestError(f"{name} lists a record with a wrong id, digest or size: {entry.id[:60]!r}")
    neff = entry.neff
    if neff is None:
        return
    if not is_sha256(neff.digest) or not 0 < neff.size_bytes <= NEFF_BYTES:
        raise ManifestError(f"{name} lists a NEFF with a wrong digest or size: {neff.digest[:80]!r}")
    if neff.path and name_of(neff.path) is None:
        raise ManifestError(f"{name} puts a NEFF where none belongs: {neff.path[:200]!r}")


def joined(here: Manifest, there: Iterable[Entry]) -> Manifest:
    """Give a manifest with the entries of both; ours counts where it knows a NEFF or theirs does not."""
    entries = {entry.id: entry for entry in there}
    for entry in here.entries:
        known = entries.get(entry.id)
        if known is None or entry.neff is not None or known.neff is None:
            entries[entry.id] = entry
    return replace(here, entries=tuple(entries[id] for id in sorted(entries)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
