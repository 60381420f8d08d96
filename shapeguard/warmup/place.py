"""Where a warm-up works: the project, the folder of compiled files, the records, and its own notes of what it did."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shapeguard.cache import codec
from shapeguard.cache.store import GraphCache
from shapeguard.checks.project import here
from shapeguard.core.errors import ShapeguardError, UsageError
from shapeguard.core.graphs import REAL, SIMULATED, GraphRecord
from shapeguard.lock.read import read
from shapeguard.lock.values import Lock
from shapeguard.trace.folder import HOME, PRIVATE, replace
from shapeguard.warmup.harvest import harvest
from shapeguard.warmup.present import COMPILER, Here, look
from shapeguard.warmup.values import Need

FOLDER = "TORCH_NEURONX_NEFF_CACHE_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a warm-up works."""

    root: Path
    lock_file: Path
    neff_dir: Path
    cache_dir: Path
    device: str
    """`simulated` or `real`."""
    environment: Mapping[str, str]
    part: str = ""
    """Which shard it is, `-1-of-4`: others may work in this very folder."""

    @property
    def compiler(self) -> str:
        """Give the version of the compiler that is here; empty where there is none, as in the simulation."""
        if self.device == SIMULATED:
            return self.environment.get("SHAPEGUARD_SIM_COMPILER", "")
        return _version(COMPILER)

    @property
    def toolchain(self) -> dict[str, str]:
        """Give the versions that are here."""
        found = here() | ({COMPILER: self.compiler} if self.compiler else {})
        if self.device == REAL and (neuron := _version("torch-neuronx")):
            found["torch-neuronx"] = neuron
        return dict(sorted(found.items()))

    @property
    def home(self) -> Path:
        """Give the folder of its notes."""
        return self.root / HOME / "warmup"

    @property
    def runs(self) -> Path:
        """Give the folder of what its recipes write down."""
        return self.home / f"runs{self.part}"

    def prepare(self) -> None:
        """Make the folders."""
        try:
            for folder in (self.home, self.runs):
                folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            ignore = self.root / HOME / ".gitignore"
            if not ignore.exists():
                replace(ignore, "*\n")
            self.neff_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make {error.filename}: {error.strerror}", hint="see --neff-dir") from error

    def lock(self) -> Lock:
        """Read the lock."""
        return read(self.lock_file)

    def records(self) -> list[GraphRecord]:
        """Give all records, of graphs and of operators."""
        if not self.cache_dir.is_dir():
            return []
        with GraphCache(self.cache_dir, for_reading=True) as cache:
            return [*cache.records(), *cache.records(eager=True)]

    def keep(self, records: Iterator[GraphRecord] | list[GraphRecord]) -> None:
        """Keep records."""
        with GraphCache(self.cache_dir) as cache:
            cache.put_many(records)

    def look(self, needs: Mapping[str, Need], records: list[GraphRecord]) -> Here:
        """Tell which graphs are compiled here."""
        return look(needs, records, self.neff_dir, device=self.device, compiler=self.compiler)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def gather(place: Place) -> int:
    """Take in what tries that were killed have compiled, and forget them. Gives how many records there were."""
    found: list[GraphRecord] = []
    folders = sorted(path for path in place.runs.iterdir() if path.is_dir()) if place.runs.is_dir() else []
    for folder in folders:
        try:
            found += harvest(folder, place.neff_dir, job=folder.name.rpartition("-")[0]).records
        except ShapeguardError:
            continue  # it had not begun
    if found:
        place.keep(found)
    for folder in folders:
        forget(folder)
    return len(found)


def forget(folder: Path) -> None:
    """Remove what a try wrote down."""
    shutil.rmtree(folder, ignore_errors=True)
    for suffix in (".log", ".until"):
        folder.with_name(folder.name + suffix).unlink(missing_ok=True)


def decoded(records: tuple[bytes, ...]) -> list[GraphRecord]:
    """Give the records that a worker sent."""
    return [codec.decode(data) for data in records]
