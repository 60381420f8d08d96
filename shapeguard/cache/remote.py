"""The interface of a remote: it moves bytes under names and knows neither records nor digests; push and pull do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, ClassVar
from urllib.parse import urlsplit

from shapeguard.core.errors import RemoteError
from shapeguard.core.plugins import names as names_of

ABSENT = ""
"""The version of a name that is not there."""
_NAME = re.compile(r"objects/[0-9a-f]{2}/[0-9a-f]{64}|manifests/[0-9A-Za-z][0-9A-Za-z._-]{0,150}/[0-9a-z-]{1,80}\.json")


class TransientError(RemoteError):
    """It may work when tried again: a dropped connection, a server that is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """What stands under a name."""

    data: bytes
    version: str
    """Changes whenever the bytes do."""


class Remote:
    """Bytes under names; a subclass with a `scheme` registers itself. Its file is called what its scheme is called."""

    scheme: ClassVar[str] = ""
    mended_by: ClassVar[str] = "remove it there, and push again"
    """The next step where something in it is damaged."""
    known: ClassVar[dict[str, type[Remote]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the scheme; two of one name are a mistake of ours."""
        if not cls.scheme:
            return
        if cls.scheme in Remote.known:
            raise TypeError(f"two remotes are named {cls.scheme!r}")
        Remote.known[cls.scheme] = cls

    def __init__(self, url: str) -> None:
        self.url = url

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Give the names that begin so, with their sizes in bytes; names of another form are left out."""
        raise NotImplementedError

    def read(self, name: str, *, limit: int) -> Blob | None:
        """Give what stands under a name, or None; `RemoteError` where it is larger than the limit."""
        raise NotImplementedError

    def fetch(self, name: str, into: BinaryIO, *, limit: int) -> bool:
        """Write what stands under a name into a file; whether it is there."""
        blob = self.read(name, limit=limit)
        if blob is not None:
            into.write(blob.data)
        return blob is not None

    def write(self, name: str, source: bytes | Path, *, expect: str | None = None) -> bool:
        """Put bytes or a file under a name, whole or not at all.

        `expect`: only if that version stands there now (`ABSENT`: if nothing does); gives whether it was written.
        """
        raise NotImplementedError


class ReadOnly(Remote):
    """A remote that nothing is written to."""

    def __init__(self, inner: Remote) -> None:
        super().__init__(inner.url)
        self._inner = inner

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Give the names of the remote."""
        return self._inner.names(prefix)

    def read(self, name: str, *, limit: int) -> Blob | None:
        """Read from the remote."""
        return self._inner.read(name, limit=limit)

    def fetch(self, name: str, into: BinaryIO, *, limit: int) -> bool:
        """Read from the remote."""
        return self._inner.fetch(name, into, limit=limit)

    def write(self, name: str, source: bytes | Path, *, expect: str | None = None) -> bool:
        """Refuse."""
        raise RemoteError(f"{self.url} is read-only here", hint="unset SHAPEGUARD_REMOTE_READ_ONLY to push to it")


def schemes() -> list[str]:
    """Give the schemes there are, without importing one."""
    from shapeguard.cache import remotes

    return names_of(remotes)


def open_remote(url: str, *, read_only: bool = False) -> Remote:
    """Give the remote of an address; `RemoteError` names the schemes there are."""
    scheme = urlsplit(url).scheme
    if scheme not in schemes():
        known = " ".join(f"{each}://" for each in schemes())
        raise RemoteError(f"{url!r} is no address of a remote", hint=f"write one of {known}")
    import_module(f"shapeguard.cache.remotes.{scheme}")
    remote = Remote.known[scheme](url)
    return ReadOnly(remote) if read_only else remote


def is_name(name: str) -> bool:
    """Whether a name is one that shapeguard gives: nothing else is read or written."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def checked(name: str) -> str:
    """Give the name back; one of another form is a mistake of ours."""
    if not is_name(name):
        raise RemoteError(f"{name[:200]!r} is no name in a remote")
    return name


def wrong_digest(name: str, remote: Remote) -> RemoteError:
    """Give the error for an object whose bytes are not those that its name says."""
    return RemoteError(f"{name} in {remote.url} has another digest than its name says", hint=remote.mended_by)


def gone(name: str, remote: Remote) -> RemoteError:
    """Give the error for an object that a manifest names and that is not there."""
    return RemoteError(f"{name} is not in {remote.url}, though its manifest names it", hint=remote.mended_by)


def too_large(name: str, limit: int, remote: Remote) -> RemoteError:
    """Give the error for more bytes than there may be."""
    return RemoteError(f"{name} in {remote.url} has more than the {limit} bytes it may have", hint=remote.mended_by)
