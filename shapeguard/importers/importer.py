"""What an importer is: it reads what another tool wrote, and gives the same event lines that a trace writes.

One file a kind of log in `kinds/`; a file that is there is tried. Logs are untrusted: nothing of them is run, lines
that cannot be read are counted and said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

Event = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Imported:
    """The lines of one process."""

    rank: int = 0
    world_size: int = 1
    device: dict[str, Any] = field(default_factory=dict)
    """What is known of the device: target, toolchain."""
    events: list[dict[str, Any]] = field(default_factory=list)
    num_unread: int = 0
    """Lines that could not be read."""


class Importer:
    """Reads one kind of log; its docstring says which."""

    name: ClassVar[str]
    what: ClassVar[str]
    """What it is called in a report."""
    has_steps: ClassVar[bool] = False
    """Whether it tells in which call of a function a graph was needed at the earliest."""
    known: ClassVar[dict[str, type[Importer]]] = {}

    def __init_subclass__(cls) -> None:
        if cls.known.setdefault(cls.name, cls) is not cls:
            raise TypeError(f"two importers are called {cls.name!r}")

    def fits(self, path: Path) -> bool:
        """Tell whether the path looks like this kind; only its name and first lines are looked at."""
        raise NotImplementedError

    def read(self, path: Path, *, root: str) -> list[Imported]:
        """Give what stands in it, a process each; `root` is the folder that files are named from."""
        raise NotImplementedError


class Numbering:
    """Gives events their numbers, and each graph the call of its function that needed it at the earliest."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._compiles = 0
        self._steps: dict[str, int] = {}
        self._versions: dict[tuple[str, str], int] = {}

    def begin(self, function: str, phase: str) -> None:
        """A function needs another graph: its k-th one came with its k-th call at the earliest."""
        name = (phase, function)
        self._versions[name] = self._versions.get(name, 0) + 1
        while self._steps.get(phase, 0) < self._versions[name]:
            self._steps[phase] = self._steps.get(phase, 0) + 1
            number = sum(self._steps.values())
            self.events.append({"type": "step", "step": number, "phase": phase, "phase_step": self._steps[phase]})

    def compile(self, phase: str, *, function: str = "", **facts: Any) -> None:
        """Take a compile line."""
        self._compiles += 1
        step = self._versions.get((phase, function), 0)
        row = {"type": "compile", "n": self._compiles, "step": step, "phase": phase, "phase_step": step}
        self.events.append({"inputs": [], "constants": [], **row, **facts})
