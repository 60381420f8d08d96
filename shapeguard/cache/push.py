"""`push` and `export`: what others lack, as a plan, and then the plan carried out; a manifest comes last."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from shapeguard.cache import codec, manifest
from shapeguard.cache.manifest import Entry, Manifest, ManifestError, object_name, toolchain_of
from shapeguard.cache.named import Named
from shapeguard.cache.neff_folder import digest_of
from shapeguard.cache.remote import ABSENT, Remote
from shapeguard.cache.transfer import Progress, at_once, quiet, retried
from shapeguard.core.errors import CacheError, RemoteError
from shapeguard.core.graphs import GraphRecord, Neff

_RACES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One object to write."""

    name: str
    source: bytes | Path
    size_bytes: int
    replaces: bool = False
    """What stands there has another size, so it is damaged."""

    @property
    def is_neff(self) -> bool:
        """Whether it is a compiled file and not a record."""
        return isinstance(self.source, Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushPlan:
    """What is to be written."""

    uploads: tuple[Upload, ...]
    manifests: tuple[Manifest, ...]
    num_there: int = 0
    """Records that are there already."""
    num_neffs_there: int = 0
    """NEFFs that are there already."""
    absent: tuple[str, ...] = ()
    """NEFFs that records name and the folder lacks."""

    @property
    def num_neffs(self) -> int:
        """NEFFs to write."""
        return sum(upload.is_neff for upload in self.uploads)

    @property
    def num_bytes(self) -> int:
        """Bytes to write, but for manifests."""
        return sum(upload.size_bytes for upload in self.uploads)


def plan_push(
    records: Iterable[GraphRecord], remote: Remote | None, *, lock: Named | None = None, neff_dir: Path | None = None
) -> PushPlan:
    """Say what is to be written so that the remote has these records, those of a lock, with the NEFFs of a folder."""
    there = retried(lambda: dict(remote.names("objects/"))) if remote is not None else {}
    uploads: dict[str, Upload] = {}
    absent: list[str] = []
    groups: dict[str, Manifest] = {}
    for record in records:
        if lock is not None and record.key.graph not in lock.keys:
            continue
        entry = _entry(record, uploads, neff_dir, absent)
        group = Manifest(
            model=str(record.model), toolchain=toolchain_of(record), lock=lock.digest if lock is not None else ""
        )
        known = groups.setdefault(group.name, group)
        groups[group.name] = replace(known, entries=(*known.entries, entry))
    missing = [each for each in uploads.values() if there.get(each.name) != each.size_bytes]
    num_neffs = sum(each.is_neff for each in uploads.values())
    num_missing = sum(each.is_neff for each in missing)
    return PushPlan(
        uploads=tuple(replace(each, replaces=each.name in there) for each in missing),
        manifests=tuple(groups[name] for name in sorted(groups)),
        num_there=len(uploads) - num_neffs - (len(missing) - num_missing),
        num_neffs_there=num_neffs - num_missing,
        absent=tuple(sorted(absent)),
    )


def _entry(record: GraphRecord, uploads: dict[str, Upload], neff_dir: Path | None, absent: list[str]) -> Entry:
    data = codec.encode(codec.shared(record))
    digest = hashlib.sha256(data).hexdigest()
    uploads[object_name(digest)] = Upload(name=object_name(digest), source=data, size_bytes=len(data))
    neff = _present(record.neff, neff_dir)
    if neff is not None and neff_dir is not None:
        name = object_name(neff.digest)
        uploads[name] = Upload(name=name, source=neff_dir / neff.path, size_bytes=neff.size_bytes)
    elif neff_dir is not None and record.neff is not None and record.neff.path:
        absent.append(record.neff.path)
    return Entry(id=record.key.id, graph=record.key.graph, object=digest, size_bytes=len(data), neff=neff)


def _present(neff: Neff | None, neff_dir: Path | None) -> Neff | None:
    """Give the NEFF where its file is there."""
    if neff is None or neff_dir is None or not neff.path:
        return None
    path = neff_dir / neff.path
    return neff if path.is_file() and not path.is_symlink() else None


def push(plan: PushPlan, remote: Remote, *, progress: Progress = quiet) -> list[tuple[str, str]]:
    """Carry a plan out: objects first, in parallel, then the manifests that name them.

    Gives the manifests of the remote that could not be added to, with the reason; the others are.
    """
    works: list[Callable[[], None]] = [partial(_upload, remote, each) for each in plan.uploads]
    at_once(works, progress=progress)
    troubles = []
    for each in plan.manifests:
        try:
            _publish(remote, each)
        except ManifestError as error:
            said = error.message.removeprefix(f"{each.name} ")
            troubles.append((each.name, f"{said}; {error.hint or remote.mended_by}"))
    return troubles


def _upload(remote: Remote, upload: Upload) -> None:
    if isinstance(upload.source, Path):
        digest = upload.name.rpartition("/")[2]
        if digest_of(upload.source) != digest:
            raise not_recorded(upload.source)
    # False: another writer was first, with the same bytes, as the name is their digest.
    remote.write(upload.name, upload.source, expect=None if upload.replaces else ABSENT)


def not_recorded(path: Path) -> CacheError:
    """Give the error for a compiled file with another digest than its record says."""
    return CacheError(f"{path} is not the file its record says", hint="shapeguard cache scan --verify names such files")


def _publish(remote: Remote, ours: Manifest) -> None:
    """Add entries to a manifest; a writer that was faster is joined with, not overwritten."""
    for _ in range(_RACES):
        if retried(partial(_try_publish, remote, ours)):
            return
    raise RemoteError(f"{ours.name} in {remote.url} changes all the time", hint="try again later")


def _try_publish(remote: Remote, ours: Manifest) -> bool:
    found = remote.read(ours.name, limit=manifest.MANIFEST_BYTES)
    if found is None:
        return remote.write(ours.name, manifest.encode(ours), expect=ABSENT)
    data = manifest.encode(manifest.joined(ours, manifest.decode(found.data, ours.name).entries))
    return data == found.data or remote.write(ours.name, data, expect=found.version)
