"""The simulated persistent cache: what TorchNeuron would find on disk (facts, sections 3.1 and 3.2).

By default it belongs to one process and lies in memory, so that no count depends on what another run left. With
`TORCH_NEURONX_NEFF_CACHE_DIR` set it is that folder, laid out as there: `ab/cd/<32 hex>.neff`, in sync mode
`<64 hex>/<64 hex>.neff`, written beside and renamed. What stands in a file is not a compiled program, and its first
bytes say so.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from shapeguard.core.neffs import SIMULATED
from shapeguard.neuron.model.policy import Policy

_POLL_S = 0.02


def persistent_key(key: str, program: str, digits: int, compiler: str = "") -> str:
    """Give hex digits of the in-memory key, the program and the compiler: two of them never share an entry."""
    whole = f"simulated\0{key}\0{program}" + (f"\0{compiler}" if compiler else "")
    return hashlib.blake2b(whole.encode(), digest_size=digits // 2).hexdigest()


def artifact(key: str) -> bytes:
    """Give what stands in for a compiled program."""
    return SIMULATED + key.encode() + b"\n"


class Store(Protocol):
    """Where artifacts lie."""

    def get(self, key: str) -> bytes | None:
        """Give an artifact; None where there is none."""

    def put(self, key: str, data: bytes) -> None:
        """Keep an artifact."""

    @contextmanager
    def locked(self, key: str) -> Iterator[bool]:
        """Hold the key's lock; gives whether it was free at once: if not, another process may have compiled."""
        yield True

    def clear(self) -> None:
        """Forget every artifact."""


class MemoryStore:
    """The persistent cache of one process, gone with it."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """Give an artifact; None where there is none."""
        return self._data.get(key)

    def put(self, key: str, data: bytes) -> None:
        """Keep an artifact."""
        self._data[key] = data

    @contextmanager
    def locked(self, key: str) -> Iterator[bool]:
        """Hold the key's lock, as far as there is one."""
        yield True

    def clear(self) -> None:
        """Forget every artifact of ours."""
        self._data.clear()


class FolderStore:
    """The persistent cache in a folder that the user named; other processes and later runs find what is there."""

    def __init__(self, root: Path, *, locks: Path, timeout_s: float) -> None:
        self._root = root
        self._locks = locks / "locks"
        self._timeout_s = timeout_s

    def path(self, key: str) -> Path:
        """Give the place of an entry."""
        if len(key) == 64:
            return self._root / key / f"{key}.neff"
        return self._root / key[:2] / key[2:4] / f"{key}.neff"

    def get(self, key: str) -> bytes | None:
        """Give an artifact; None where there is none."""
        try:
            data = self.path(key).read_bytes()
        except OSError:
            return None
        return data if data.startswith(SIMULATED) else None

    def put(self, key: str, data: bytes) -> None:
        """Keep an artifact."""
        path = self.path(key)
        # A folder that cannot be written is a cold cache, never the end of the traced program.
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            file, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
            with os.fdopen(file, "wb") as out:
                out.write(data)
            Path(name).replace(path)

    @contextmanager
    def locked(self, key: str) -> Iterator[bool]:
        """Hold the key's lock, as far as there is one."""
        file = self._open_lock(key)
        if file < 0:
            yield True
            return
        try:
            yield self._take(file)
        finally:
            os.close(file)

    def _open_lock(self, key: str) -> int:
        with suppress(OSError):
            self._locks.mkdir(parents=True, exist_ok=True)
            return os.open(self._locks / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return -1

    def _take(self, file: int) -> bool:
        """Wait for the lock; one that is held longer than the limit counts as stale and is passed over."""
        until = time.monotonic() + self._timeout_s
        is_first = True
        while True:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return is_first
            is_first = False
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_S)

    def clear(self) -> None:
        """Forget every artifact of ours."""
        for path in (*self._root.glob("??/??/*.neff"), *self._root.glob("?" * 64 + "/*.neff")):
            # Only our own: in a folder shared with hardware the others took hours to compile.
            if self.get(path.stem) is not None:
                with suppress(OSError):
                    path.unlink()


def store_for(policy: Policy) -> Store | None:
    """Give the persistent cache that the environment asks for; None where it is turned off."""
    if not policy.has_disk:
        return None
    if not policy.cache_dir:
        return MemoryStore()
    locks = Path(policy.lock_dir) if policy.lock_dir else Path(tempfile.gettempdir()) / "local_cache"
    return FolderStore(Path(policy.cache_dir), locks=locks, timeout_s=policy.lock_timeout_s)
