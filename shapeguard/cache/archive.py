"""One file with records and NEFFs: a plain tar whose bytes depend on its contents only, and its wary reader.

Nothing is compressed, so that no few bytes can become many; nothing is unpacked by name, so that no name leads
anywhere: members are read as the objects of a remote are, by digest.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from shapeguard.cache import manifest
from shapeguard.cache.location import scratch_file
from shapeguard.cache.neff_place import DigestingReader
from shapeguard.cache.push import PushPlan, not_recorded
from shapeguard.cache.remote import Blob, Remote, is_name, too_large, wrong_digest
from shapeguard.core.errors import CacheError, RemoteError

_MOST_MEMBERS = 500_000
_LARGEST = 0o77777777777
"""Bytes of a member, as eleven digits of its header say them."""
_CHUNK = 1 << 20


def write_archive(path: Path, plan: PushPlan) -> int:
    """Write a plan's objects and manifests into an archive, whole or not at all, and give its size in bytes."""
    members: list[tuple[str, bytes | Path]] = [(upload.name, upload.source) for upload in plan.uploads]
    members += [(each.name, manifest.encode(each)) for each in plan.manifests]
    try:
        descriptor, scratch = scratch_file(path.parent, prefix=f".{path.name[:100]}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                _write(stream, sorted(members, key=lambda member: member[0]))
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
        return path.stat().st_size
    except OSError as error:
        raise CacheError(
            f"cannot write {path}: {error.strerror or error}", hint="give a file in another folder"
        ) from error


def _write(stream: BinaryIO, members: list[tuple[str, bytes | Path]]) -> None:
    # USTAR has room for 8 GB a member and for no times, owners or names of this machine beside those set here.
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, source in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            if isinstance(source, bytes):
                info.size = len(source)
                tar.addfile(info, BytesIO(source))
            else:
                info.size = source.stat().st_size
                if info.size > _LARGEST:
                    raise CacheError(f"{source} has more than the 8 GB that an archive takes", hint="push it")
                with source.open("rb") as origin:
                    read = DigestingReader(origin)
                    tar.addfile(info, read)
                if read.digest != name.rpartition("/")[2]:
                    raise not_recorded(source)


class Archive(Remote):
    """An archive, read as a remote."""

    mended_by = "export it again"

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path
        self._members = dict(_members(path))
        if not any(name.startswith("manifests/") for name in self._members):
            raise CacheError(f"{path} holds no records", hint="export it again")

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Give the members' names and sizes."""
        for name, (_, size) in self._members.items():
            if name.startswith(prefix):
                yield name, size

    def read(self, name: str, *, limit: int) -> Blob | None:
        """Read a member."""
        if name not in self._members:
            return None
        offset, size = self._members[name]
        if size > limit:
            raise too_large(name, limit, self)
        with self._open(offset) as stream:
            data = stream.read(size)
        return Blob(data=data, version=str(offset))

    def fetch(self, name: str, into: BinaryIO, *, limit: int) -> bool:
        """Copy a member."""
        if name not in self._members:
            return False
        offset, size = self._members[name]
        if size > limit:
            raise too_large(name, limit, self)
        with self._open(offset) as stream:
            while size > 0 and (chunk := stream.read(min(size, _CHUNK))):
                into.write(chunk)
                size -= len(chunk)
        return True

    def write(self, name: str, source: bytes | Path, *, expect: str | None = None) -> bool:
        """Refuse."""
        raise RemoteError(f"{self.url} is an archive and cannot be written to")

    def verify(self) -> None:
        """Read every object and compare it with the digest that is its name; `CacheError` names one that differs."""
        for name, (offset, size) in self._members.items():
            if not name.startswith("objects/"):
                continue
            with self._open(offset) as stream:
                read = DigestingReader(stream)
                while size > 0 and (chunk := read.read(min(size, _CHUNK))):
                    size -= len(chunk)
            if read.digest != name.rpartition("/")[2]:
                raise wrong_digest(name, self)

    def _open(self, offset: int) -> BinaryIO:
        try:
            stream = self._path.open("rb")
            stream.seek(offset)
        except OSError as error:
            raise CacheError(f"cannot read {self._path}: {error.strerror or error}") from error
        return stream


def _members(path: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Give name, offset and size of each member; `CacheError` where one is not of an archive that `export` wrote."""
    try:
        with path.open("rb") as stream:
            yield from _checked(path, _headers(stream), os.fstat(stream.fileno()).st_size)
    except (tarfile.TarError, ValueError, EOFError, OverflowError) as error:
        raise CacheError(
            f"{path} is no archive of the cache, or is cut off: {error}", hint="export it again"
        ) from error
    except OSError as error:
        raise CacheError(f"cannot read {path}: {error.strerror or error}") from error


def _headers(stream: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Give the headers block by block: `tarfile` itself would read whole what a header says of the next one."""
    while True:
        block = stream.read(tarfile.BLOCKSIZE)
        if block == bytes(tarfile.BLOCKSIZE):
            return
        info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        info.offset_data = stream.tell()
        yield info
        # Rounded up to whole blocks.
        stream.seek(info.offset_data + -(-info.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)


def _checked(path: Path, headers: Iterable[tarfile.TarInfo], total: int) -> Iterator[tuple[str, tuple[int, int]]]:
    seen: set[str] = set()
    for info in headers:
        name = info.name
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise CacheError(f"{path} holds {name[:200]!r}, which is no plain file", hint="do not use it")
        if not is_name(name) or name in seen:
            raise CacheError(f"{path} holds {name[:200]!r}, a name that shapeguard does not give", hint="do not use it")
        if info.size < 0 or info.offset_data + info.size > total:
            raise CacheError(f"{path} is cut off in {name}", hint="export it again")
        if len(seen) >= _MOST_MEMBERS:
            raise CacheError(f"{path} holds more than {_MOST_MEMBERS} members")
        seen.add(name)
        yield name, (info.offset_data, info.size)
