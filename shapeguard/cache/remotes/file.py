"""A folder as a remote, local or mounted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from shapeguard.cache.location import make_below, scratch_file
from shapeguard.cache.remote import ABSENT, Blob, Remote, checked, is_name, too_large
from shapeguard.core.errors import RemoteError

_LOCK = ".shapeguard.lock"
_CHUNK = 1 << 20


class FileRemote(Remote):
    """A folder: `file:///shared/graphs`."""

    scheme = "file"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise RemoteError(f"{url!r} names no folder", hint="write file:///path/to/folder, with three slashes")
        self._root = Path(unquote(parts.path))

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Give the files of the folder that have a name of shapeguard's; links are left out."""
        top = self._root / prefix.partition("/")[0]
        if not self._root.is_dir():
            raise RemoteError(f"{self._root} is no folder", hint="make it, or give another address")
        if top.is_symlink():
            return
        for place, folders, files in os.walk(top, onerror=None):
            folders.sort()
            for file in sorted(files):
                path = Path(place, file)
                name = path.relative_to(self._root).as_posix()
                found = path.lstat()
                if name.startswith(prefix) and is_name(name) and stat.S_ISREG(found.st_mode):
                    yield name, found.st_size

    def read(self, name: str, *, limit: int) -> Blob | None:
        """Read a file."""
        stream = self._open(name)
        if stream is None:
            return None
        with stream, _border(name):
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise too_large(name, limit, self)
        return Blob(data=data, version=hashlib.sha256(data).hexdigest())

    def fetch(self, name: str, into: BinaryIO, *, limit: int) -> bool:
        """Copy a file."""
        stream = self._open(name)
        if stream is None:
            return False
        with stream, _border(name):
            left = limit
            while chunk := stream.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise too_large(name, limit, self)
                into.write(chunk)
        return True

    def write(self, name: str, source: bytes | Path, *, expect: str | None = None) -> bool:
        """Put a file in place by renaming its neighbour; a lock orders those who look before they write."""
        target = self._root / checked(name)
        with _border(name):
            make_below(self._root, target.parent)
            scratch = _scratch(target.parent, source)
            try:
                if expect == ABSENT:
                    return _place_new(scratch, target)
                with self._locked():
                    if expect is not None and self._version(name) != expect:
                        return False
                    scratch.replace(target)
                return True
            finally:
                scratch.unlink(missing_ok=True)

    def _open(self, name: str) -> BinaryIO | None:
        path = self._root / checked(name)
        with _border(name):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise self._no_file(name) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._no_file(name)
        return os.fdopen(descriptor, "rb")

    def _no_file(self, name: str) -> RemoteError:
        return RemoteError(f"{name} in {self.url} is no plain file", hint=self.mended_by)

    def _version(self, name: str) -> str:
        blob = self.read(name, limit=1 << 30)
        return blob.version if blob else ABSENT

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = _lock_file(self._root / _LOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except PermissionError:
        # Another user's: a lock can be taken on what can only be read as well.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def _scratch(folder: Path, source: bytes | Path) -> Path:
    descriptor, path = scratch_file(folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if isinstance(source, bytes):
                stream.write(source)
            else:
                with source.open("rb") as origin:
                    shutil.copyfileobj(origin, stream, _CHUNK)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _place_new(scratch: Path, target: Path) -> bool:
    try:
        os.link(scratch, target, follow_symlinks=False)
    except FileExistsError:
        return False
    return True


@contextlib.contextmanager
def _border(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RemoteError(f"{error.filename or name}: {error.strerror or error}") from error
