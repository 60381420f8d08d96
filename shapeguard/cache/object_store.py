"""What the remotes in object storage share: obstore, and what its errors mean."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar
from urllib.parse import urlsplit

from shapeguard.cache.remote import ABSENT, Blob, Remote, TransientError, checked, is_name, too_large
from shapeguard.core.errors import DeviceError, RemoteError

if TYPE_CHECKING:
    from types import ModuleType

_CHUNK = 8 << 20
# An overall limit would cut large files off; a server that says nothing for so long is gone.
CLIENT = {"connect_timeout": timedelta(seconds=10), "read_timeout": timedelta(seconds=30), "timeout": "6h"}
# Retries are ours, so that they are counted once and also cover what obstore takes for an answer.
RETRIES = {"max_retries": 0, "retry_timeout": timedelta(seconds=0)}
# Without credentials in the environment obstore asks the machine's own service for some.
_NO_CREDENTIALS = ("CredentialsError", "169.254.169.254", "token request", "credential", "must be specified")
_GONE = ("NoSuchBucket", "ContainerNotFound", "The specified bucket")


class ObjectRemote(Remote):
    """A bucket, or a part of it; a subclass makes the store."""

    credentials: ClassVar[str] = ""
    """The variables that usually hold them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        if not parts.netloc:
            raise RemoteError(f"{url!r} names no bucket", hint=f"write {parts.scheme}://bucket/folder")
        with self._border():
            self._store: Any = self.store(parts.netloc, parts.path.strip("/") or None)

    def store(self, bucket: str, prefix: str | None) -> object:
        """Give obstore's store."""
        raise NotImplementedError

    def names(self, prefix: str) -> Iterator[tuple[str, int]]:
        """List the objects below a prefix."""
        with self._border():
            # Object stores list by whole folders.
            for chunk in obstore().list(self._store, prefix=prefix.rstrip("/"), chunk_size=1000):
                for found in chunk:
                    name = str(found["path"])
                    if name.startswith(prefix) and is_name(name):
                        yield name, int(found["size"])

    def read(self, name: str, *, limit: int) -> Blob | None:
        """Read an object."""
        with self._border():
            try:
                found = obstore().get(self._store, checked(name))
                if found.meta["size"] > limit:
                    raise too_large(name, limit, self)
                data = bytes(found.bytes())
            except FileNotFoundError as error:
                _check_bucket(error)
                return None
        if len(data) != found.meta["size"]:
            raise TransientError(f"{name} broke off after {len(data)} of {found.meta['size']} bytes")
        return Blob(data=data, version=str(found.meta["e_tag"]))

    def fetch(self, name: str, into: BinaryIO, *, limit: int) -> bool:
        """Read an object piece by piece."""
        with self._border():
            try:
                found = obstore().get(self._store, checked(name))
                if found.meta["size"] > limit:
                    raise too_large(name, limit, self)
                for chunk in found.stream(min_chunk_size=_CHUNK):
                    into.write(chunk)
            except FileNotFoundError as error:
                _check_bucket(error)
                return False
        return True

    def write(self, name: str, source: bytes | Path, *, expect: str | None = None) -> bool:
        """Put an object; with `expect` on the server's word that it is still so."""
        mode: Any = "overwrite" if expect is None else "create" if expect == ABSENT else {"e_tag": expect}
        with self._border():
            from obstore.exceptions import AlreadyExistsError, PreconditionError

            try:
                obstore().put(self._store, checked(name), source, mode=mode)
            except (AlreadyExistsError, PreconditionError):
                return False
            except FileNotFoundError as error:
                _check_bucket(error)
                raise TransientError(f"{name} could not be written: {_line(error)}") from error
        return True

    @contextlib.contextmanager
    def _border(self) -> Iterator[None]:
        """Turn obstore's errors into ours: those that may go away by themselves, and the others."""
        obstore()
        url, credentials = self.url, f"set them in the environment: {self.credentials}"
        from obstore import exceptions

        try:
            yield
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            hint = f"see the credentials in the environment: {self.credentials}"
            raise RemoteError(f"{url} refused: {_line(error)}", hint=hint) from error
        except exceptions.GenericError as error:
            text = str(error)
            if any(mark in text for mark in _GONE):
                raise RemoteError(f"there is no such bucket: {_line(error)}", hint="give another address") from error
            if any(mark in text for mark in _NO_CREDENTIALS):
                raise RemoteError(f"no credentials for {url}: {_line(error)}", hint=credentials) from error
            raise TransientError(f"{url}: {_line(error)}") from error
        except exceptions.BaseError as error:
            raise RemoteError(f"{url}: {_line(error)}") from error
        except BaseException as error:
            # What obstore did not expect is a panic of Rust's, which Python does not even take for an exception.
            if type(error).__name__ != "PanicException":
                raise
            raise RemoteError(
                f"{url}: {_line(error)}", hint="see the address and the variables of its store"
            ) from error


def obstore() -> ModuleType:
    """Give obstore, which an extra brings."""
    try:
        import obstore
    except ImportError as error:
        raise DeviceError(
            "object storage needs obstore, which is not installed here",
            hint="python -m pip install 'shapeguard[remote]'",
        ) from error
    return obstore


def _check_bucket(error: FileNotFoundError) -> None:
    """Tell an object that is not there from a bucket that is not."""
    if any(mark in str(error) for mark in _GONE):
        raise RemoteError(f"there is no such bucket: {_line(error)}", hint="make it, or give another address")


def _line(error: BaseException) -> str:
    """Give the part of obstore's many lines that a person needs."""
    line = (str(error).strip().splitlines() or [""])[0]
    return line if len(line) <= 300 else f"{line[:300]}…"
