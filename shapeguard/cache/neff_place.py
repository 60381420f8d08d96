"""Putting compiled files that came from elsewhere where the Neuron stack looks: whole, checked, and nowhere else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from shapeguard.cache.location import make_below, scratch_file
from shapeguard.cache.manifest import object_name
from shapeguard.cache.neff_folder import digest_of
from shapeguard.cache.remote import Remote, gone, wrong_digest
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import Neff
from shapeguard.core.neffs import DONE, Layout, name_of

INCOMING = "incoming"
_STALE_S = 86_400.0
_RACES = 5


class Digesting:
    """A file that knows the SHA-256 of what was written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def write(self, data: bytes) -> int:
        """Write, and take into the digest."""
        self._digest.update(data)
        self.size_bytes += len(data)
        return self._stream.write(data)

    @property
    def digest(self) -> str:
        """Hex digits of what was written."""
        return self._digest.hexdigest()


class DigestingReader:
    """A file that knows the SHA-256 of what was read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read, and take into the digest."""
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    @property
    def digest(self) -> str:
        """Hex digits of what was read."""
        return self._digest.hexdigest()


class Incoming:
    """A folder of files on their way: each is named by its digest, and only whole ones have that name."""

    def __init__(self, cache_folder: Path) -> None:
        self._folder = cache_folder / INCOMING
        with _border(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._folder.is_symlink():
                raise CacheError(f"{self._folder} is a link", hint="remove it")
            self._forget_stale()

    def fetch(self, neff: Neff, remote: Remote) -> Path:
        """Give the file of a NEFF: one that an earlier try brought, or fetched now and checked."""
        target = self._folder / neff.digest
        if target.is_file() and not target.is_symlink() and digest_of(target) == neff.digest:
            return target
        name = object_name(neff.digest)
        with _border(self._folder):
            descriptor, part = scratch_file(self._folder, prefix=neff.digest, suffix=".part")
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    into = Digesting(stream)
                    is_there = remote.fetch(name, into, limit=neff.size_bytes)  # type: ignore[arg-type]
                if not is_there:
                    raise gone(name, remote)
                if (into.size_bytes, into.digest) != (neff.size_bytes, neff.digest):
                    raise wrong_digest(name, remote)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        return target

    def place(self, neff: Neff, remote: Remote, root: Path) -> None:
        """Put a NEFF in place; another process that puts the same one there may take the file away meanwhile."""
        for _ in range(_RACES):
            path = self.fetch(neff, remote)
            with contextlib.suppress(FileNotFoundError):
                place(neff, path, root)
                return
        raise CacheError(f"{self._folder / neff.digest} disappears all the time", hint="try again")

    def forget(self, neffs: Iterable[Neff]) -> None:
        """Remove files that are in place now."""
        for neff in neffs:
            with contextlib.suppress(OSError):
                (self._folder / neff.digest).unlink()

    def _forget_stale(self) -> None:
        before = time.time() - _STALE_S
        for part in self._folder.glob("*.part"):
            # Of others who fetch at the same time, any may be done with its part by now.
            with contextlib.suppress(FileNotFoundError):
                if part.lstat().st_mtime < before:
                    part.unlink()


def is_in_place(neff: Neff, root: Path) -> bool:
    """Whether the file stands where the stack looks for it, as it should be."""
    path = root / neff.path
    try:
        found = path.lstat()
    except OSError:
        return False
    return not path.is_symlink() and found.st_size == neff.size_bytes and digest_of(path) == neff.digest


def place(neff: Neff, source: Path, root: Path) -> None:
    """Put a checked file where the stack looks for it below `root`; `FileNotFoundError` where the source is gone."""
    name = name_of(neff.path)
    if name is None:
        raise CacheError(f"{neff.path[:200]!r} is no place for a NEFF")
    target = root / neff.path
    with _border(root, lets_pass=(FileNotFoundError,)):
        make_below(root, target.parent)
        _put(source, target)
        if name.layout is Layout.XLA:
            (target.parent / DONE).touch()


def _put(source: Path, target: Path) -> None:
    """Give a file a second name, or a copy on another file system; readers see none of it or all of it."""
    descriptor, scratch = scratch_file(target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream, source.open("rb") as origin:
            if not _linked(source, scratch):
                shutil.copyfileobj(origin, stream, 1 << 20)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def _linked(source: Path, scratch: Path) -> bool:
    other = scratch.with_suffix(".link")
    try:
        os.link(source, other, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    other.replace(scratch)
    return True


@contextlib.contextmanager
def _border(folder: Path, *, lets_pass: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    try:
        yield
    except lets_pass:
        raise
    except OSError as error:
        raise CacheError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
