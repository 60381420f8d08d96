"""What a check is: it looks at a machine and says what it found. One file a check; a file that is there is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from shapeguard.doctor.machine import Machine


class Level(StrEnum):
    """How much it matters."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that a check found."""

    subject: str
    """The variable, package or folder at fault."""
    message: str
    hint: str = ""
    """The next step."""
    level: Level = Level.WARNING
    check: str = ""


class Check:
    """One check; its docstring says what it looks for."""

    name: ClassVar[str]
    known: ClassVar[dict[str, type[Check]]] = {}

    def __init_subclass__(cls) -> None:
        if cls.known.setdefault(cls.name, cls) is not cls:
            raise TypeError(f"two checks are called {cls.name!r}")

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Give what there is to say; nothing where all is well."""
        raise NotImplementedError
