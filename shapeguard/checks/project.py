"""What a check and a lock work on: the jobs of a configuration, their lock, and the toolchain that is here."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from shapeguard import __version__
from shapeguard.checks.faults import faults
from shapeguard.checks.job import Job, chosen
from shapeguard.checks.judge import Place, first_line
from shapeguard.checks.settings import JobSettings
from shapeguard.core.errors import ConfigError, LockError
from shapeguard.lock.observe import versions
from shapeguard.lock.read import read
from shapeguard.lock.values import NAME, Lock

_OFF = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder with a configuration that has jobs."""

    root: Path
    file: str
    """The configuration as errors call it; empty where there is none."""
    known: Mapping[str, JobSettings]
    line: Callable[[str], int] = first_line
    """Gives the line of a dotted key in the configuration."""

    @property
    def lock_file(self) -> Path:
        """Where the lock lies: beside the configuration."""
        return Path(os.path.relpath(self.root / NAME))

    @property
    def place(self) -> Place:
        """Where findings without a line of their own are shown."""
        return Place(lock=self.lock_file, config=self.file, line=self.line)

    def jobs(self, names: Iterable[str]) -> list[Job]:
        """Give the jobs asked for, or all; refuses what is wrong with any of them."""
        for name, settings in self.known.items():
            for where, said, hint in faults(name, settings):
                at = f"{self.file}:{self.line(where)}: " if self.file else ""
                raise ConfigError(f"{at}{said}", hint=hint)
        return chosen(names, self.known, root=self.root, file=self.file)


def here() -> dict[str, str]:
    """Give the toolchain of this interpreter without importing any of it."""
    found = {"python": platform.python_version(), "shapeguard": __version__}
    for name in ("torch", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions(found)


def demand_toolchain(lock: Lock, found: Mapping[str, str], file: Path) -> None:
    """Refuse another toolchain than the lock's: its graphs have other keys, which would only be a list of drifts."""
    differing = [
        f"{name} {lock.toolchain[name]}, here {found.get(name, 'none')}"
        for name in sorted(lock.toolchain)
        if found and found.get(name) != lock.toolchain[name]
    ]
    if differing:
        raise LockError(
            f"{file} was locked with {'; '.join(differing)}",
            hint="install what it was locked with, or run `shapeguard lock --upgrade`",
        )


def read_lock(project: Project) -> Lock:
    """Read the project's lock; `LockError` where there is none."""
    return read(project.lock_file)


def is_set(environment: Mapping[str, str], name: str) -> bool:
    """Whether a switch of the environment is on: `CI=false` is off."""
    return environment.get(name, "").lower() not in _OFF
