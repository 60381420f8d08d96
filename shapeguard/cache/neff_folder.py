"""Look through a folder of NEFFs, whichever stack it belongs to; links are never followed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from shapeguard.core.errors import CacheError
from shapeguard.core.neffs import (
    LARGEST_SIMULATED,
    SIMULATED,
    Layout,
    NeffName,
    State,
    is_compiler_folder,
    is_lock,
    name_of,
    xla_name,
    xla_state,
)

YOUNG_S = 60.0
"""A lock younger than this may belong to a process that has not taken it yet."""
YOUNG_ON_NETWORK_S = 86_400.0
"""The same on a network file system, where a lock of another machine need not be seen."""
_NETWORK = ("nfs", "cifs", "smb", "fuse", "lustre", "ceph", "9p", "gpfs", "beegfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One compile's file or folder."""

    name: NeffName
    path: Path
    """The NEFF, or the module's folder."""
    state: State
    size_bytes: int
    is_held: bool = False
    """A living process holds its lock."""

    @property
    def neff(self) -> Path:
        """The compiled file."""
        return self.path / "model.neff" if self.name.layout is Layout.XLA else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock file."""

    path: Path
    is_stale: bool
    """No process holds it, and none is about to."""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeffFolder:
    """What a folder holds."""

    root: Path
    entries: tuple[Entry, ...] = ()
    locks: tuple[Lock, ...] = ()
    strangers: tuple[str, ...] = field(default=())
    """Names that belong to no layout, and links; left alone."""
    simulated: tuple[str, ...] = field(default=())
    """What traces without Neuron left in a NEFF's place; left alone too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StandIn:
    """A file of the simulated device."""

    path: str


_Found: TypeAlias = "Entry | Lock | _StandIn | str"


def neff_folders(environment: Mapping[str, str]) -> list[Path]:
    """Give the folders that the Neuron stacks read here, those that exist."""
    found = [environment.get("TORCH_NEURONX_NEFF_CACHE_DIR") or "/tmp/neff_cache"]
    found.append(environment.get("TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR") or "/tmp/local_cache")
    url = environment.get("NEURON_COMPILE_CACHE_URL") or "/var/tmp/neuron-compile-cache"
    found.append(url.removeprefix("file://"))
    flags = environment.get("NEURON_CC_FLAGS", "").replace("=", " ").split()
    found += [value for name, value in pairwise(flags) if name == "--cache_dir"]
    return [Path(each) for each in dict.fromkeys(found) if "://" not in each and Path(each).is_dir()]


def look(root: Path, *, now: float | None = None) -> NeffFolder:
    """Look through a folder; `CacheError` where it cannot be read."""
    if not root.is_dir():
        raise CacheError(f"{root} is no folder", hint="give the folder of NEFFs with --neff-dir")
    young = YOUNG_ON_NETWORK_S if is_on_network(root) else YOUNG_S
    entries: list[Entry] = []
    locks: list[Lock] = []
    strangers: list[str] = []
    simulated: list[str] = []
    try:
        for found in _walk(root, (time.time() if now is None else now) - young):
            if isinstance(found, Entry):
                entries.append(found)
            elif isinstance(found, Lock):
                locks.append(found)
            elif isinstance(found, _StandIn):
                simulated.append(found.path)
            else:
                strangers.append(found)
    except OSError as error:
        raise CacheError(f"cannot read {error.filename or root}: {error.strerror}") from error
    return NeffFolder(
        root=root,
        entries=tuple(sorted(entries, key=lambda entry: str(entry.path))),
        locks=tuple(sorted(locks, key=lambda lock: str(lock.path))),
        strangers=tuple(sorted(strangers)),
        simulated=tuple(sorted(simulated)),
    )


def _walk(root: Path, young: float) -> Iterator[_Found]:
    for top in _scan(root):
        if not top.is_dir(follow_symlinks=False):
            yield _lock_or_name(root, top, young)
        elif is_compiler_folder(top.name):
            for module in _scan(top.path):
                yield from _module(root, module, young)
        else:
            yield from _torch(root, top, young)


def _scan(path: str | Path) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _module(root: Path, module: os.DirEntry[str], young: float) -> Iterator[Entry | Lock | str]:
    """Judge a module's folder of torch-xla."""
    name = xla_name(os.path.relpath(module.path, root).replace(os.sep, "/"))
    if name is None or not module.is_dir(follow_symlinks=False):
        yield _lock_or_name(root, module, young)
        return
    sizes: dict[str, int] = {}
    held = False
    for file in _scan(module.path):
        if file.is_file(follow_symlinks=False) and is_lock(file.name):
            lock = _lock(Path(file.path), young)
            held = held or not lock.is_stale
            yield lock
        elif file.is_file(follow_symlinks=False):
            sizes[file.name] = file.stat(follow_symlinks=False).st_size
        else:
            yield _relative(root, file)
    state, size = xla_state(sizes), sum(sizes.values())
    # Between its first file and its lock a compile looks as if it had been cut off.
    held = held or (state is State.UNFINISHED and module.stat(follow_symlinks=False).st_mtime >= young)
    yield Entry(name=name, path=Path(module.path), state=state, size_bytes=size, is_held=held)


def _torch(root: Path, top: os.DirEntry[str], young: float) -> Iterator[_Found]:
    """Look for TorchNeuron's files in a folder, which is two deep."""
    for below in _scan(top.path):
        if below.is_dir(follow_symlinks=False):
            for file in _scan(below.path):
                yield _file(root, file, young)
        else:
            yield _file(root, below, young)


def _file(root: Path, file: os.DirEntry[str], young: float) -> _Found:
    name = name_of(_relative(root, file))
    if name is None or not file.is_file(follow_symlinks=False):
        return _lock_or_name(root, file, young)
    size = file.stat(follow_symlinks=False).st_size
    if size <= LARGEST_SIMULATED and _is_simulated(file.path):
        return _StandIn(path=_relative(root, file))
    # It is renamed into place when it is whole: an empty one is what a full disk leaves.
    return Entry(name=name, path=Path(file.path), state=State.COMPILED if size else State.FAILED, size_bytes=size)


def _is_simulated(path: str) -> bool:
    """Whether a file is a stand-in that a trace without Neuron left here."""
    with Path(path).open("rb") as neff:
        return neff.read(len(SIMULATED)) == SIMULATED


def _lock_or_name(root: Path, file: os.DirEntry[str], young: float) -> Lock | str:
    if is_lock(file.name) and file.is_file(follow_symlinks=False):
        return _lock(Path(file.path), young)
    return _relative(root, file)


def _relative(root: Path, file: os.DirEntry[str]) -> str:
    return os.path.relpath(file.path, root).replace(os.sep, "/")


def _lock(path: Path, young: float) -> Lock:
    found = path.lstat()
    return Lock(path=path, is_stale=found.st_mtime < young and not is_held(path), size_bytes=found.st_size)


def is_held(path: Path) -> bool:
    """Whether a living process holds a lock; what cannot be told counts as held."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_on_network(path: Path) -> bool:
    """Whether a folder lies on a network file system, as far as this machine says."""
    whole = os.path.realpath(path)
    best, kind = "", ""
    try:
        with Path("/proc/self/mounts").open(encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                _, point, name, *_ = line.split()
                if (whole == point or whole.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                    best, kind = point, name
    except (OSError, ValueError):
        return False
    return kind.startswith(_NETWORK)


def digest_of(path: Path) -> str:
    """Give the SHA-256 of a file, which must not be a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise CacheError(f"cannot read {path}: {error.strerror or error}") from error
