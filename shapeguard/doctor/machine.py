"""What a machine has that matters to Neuron: read once, nothing imported, nothing changed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

SYSTEM_ROOT = "SHAPEGUARD_SYSTEM_ROOT"
"""Where `/dev`, `/proc` and `/sys` are looked for: a container may see those of its host elsewhere."""
WATCHED = (
    "torch torch-neuronx torch-xla libneuronxla neuronx-cc nki transformers accelerate optimum-neuron "
    "neuronx-distributed transformers-neuronx shapeguard"
).split()
"""Packages that decide which Neuron stack there is."""
_GIB = 2**30
_NETWORK = frozenset("nfs nfs4 cifs smb3 smbfs lustre efs 9p ceph glusterfs beegfs gpfs afs".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An installed distribution."""

    name: str
    version: str
    location: str

    @property
    def release(self) -> tuple[int, ...]:
        """The first two numbers of the version."""
        return tuple(int(number) for number in re.findall(r"\d+", self.version.partition("+")[0])[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder in which a Neuron stack keeps compiled files."""

    path: Path
    layer: str
    """Who reads it."""
    origin: str
    """Where the choice comes from: a variable, a flag, the default."""
    exists: bool
    mode: int = 0
    owner: int = 0
    free_bytes: int | None = None
    size_bytes: int | None = None
    """Of the whole file system."""
    is_writable: bool = True
    filesystem: str = ""
    """Kind of file system, where the machine tells."""

    @property
    def is_network(self) -> bool:
        """Whether it lies on another machine."""
        return (
            self.filesystem in _NETWORK or self.filesystem.startswith("fuse.s3") or "mountpoint-s3" in self.filesystem
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All that the checks look at."""

    environ: Mapping[str, str]
    packages: tuple[Package, ...] = ()
    """In the order in which Python finds them: of two with one name the first wins."""
    devices: tuple[str, ...] = ()
    driver: str = ""
    """Version of the kernel module; empty where it is not loaded."""
    mounts: tuple[tuple[str, str], ...] = ()
    """Mount points with the kind of file system."""
    user: int = 0
    least_free_bytes: int = 10 * _GIB

    def package(self, name: str) -> Package | None:
        """Give what an import would find."""
        return next((each for each in self.packages if each.name == name), None)

    @property
    def stacks(self) -> frozenset[str]:
        """Name the Neuron stacks that are installed: "native" (TorchNeuron), "xla" (torch_xla)."""
        found = set()
        neuron = self.package("torch-neuronx")
        if neuron is not None:
            found.add("native" if neuron.release >= (2, 10) else "xla")
        if self.package("libneuronxla") is not None:
            found.add("xla")
        return frozenset(found)

    def value(self, name: str) -> str:
        """Give a variable; empty where it is unset."""
        return self.environ.get(name, "")

    def folder(self, path: Path, *, layer: str, origin: str) -> Folder:
        """Look at a folder, or at the nearest one above it that exists."""
        exists, seen = path.is_dir(), path
        while not seen.exists() and seen != seen.parent:
            seen = seen.parent
        with suppress(OSError):
            found, space = seen.stat(), os.statvfs(seen)
            return Folder(
                path=path,
                layer=layer,
                origin=origin,
                exists=exists,
                mode=stat.S_IMODE(found.st_mode),
                owner=found.st_uid,
                free_bytes=space.f_bavail * space.f_frsize,
                size_bytes=space.f_blocks * space.f_frsize,
                is_writable=os.access(seen, os.W_OK | os.X_OK),
                filesystem=self._filesystem(seen),
            )
        return Folder(path=path, layer=layer, origin=origin, exists=exists)

    def _filesystem(self, path: Path) -> str:
        holding = [(point, kind) for point, kind in self.mounts if path.is_relative_to(point)]
        return max(holding, key=lambda mount: len(mount[0]), default=("", ""))[1]


def look(environ: Mapping[str, str], *, folders: Sequence[str], least_free_gib: float = 10.0) -> Machine:
    """Look at this machine; packages are those in `folders`, in the order of an import."""
    root = Path(environ.get(SYSTEM_ROOT) or "/")
    return Machine(
        environ=environ,
        packages=tuple(_packages(folders)),
        devices=tuple(sorted(path.name for path in (root / "dev").glob("neuron[0-9]*"))),
        driver=_text(root / "sys/module/neuron/version"),
        mounts=tuple(_mounts(_text(root / "proc/mounts"))),
        user=os.getuid() if hasattr(os, "getuid") else 0,
        least_free_bytes=int(least_free_gib * _GIB),
    )


def _packages(folders: Sequence[str]) -> list[Package]:
    found: dict[tuple[str, str], Package] = {}
    for folder in folders:
        for each in distributions(path=[folder]):
            name = re.sub(r"[-_.]+", "-", str(each.metadata["Name"] or "")).lower()
            if name in WATCHED:
                place = str(Path(str(each.locate_file(""))).resolve())
                found.setdefault((name, place), Package(name=name, version=each.version, location=place))
    return list(found.values())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _mounts(text: str) -> list[tuple[str, str]]:
    rows = [line.split() for line in text.splitlines()]
    return [(row[1].replace("\\040", " "), row[2]) for row in rows if len(row) > 2]
