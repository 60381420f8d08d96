"""The interface of an executor: it runs tries of recipes somewhere, several at once, and tells what became of them.

A file of `executors/` is called what its executor is called; nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from shapeguard.core.errors import UsageError
from shapeguard.core.plugins import names
from shapeguard.warmup.values import Result, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What an executor may use."""

    slots: int
    """Tries at once."""
    cores: int
    """NeuronCores of this machine that are shared out."""
    root: Path
    """Folder of the project, which other machines need a copy of."""


class Executor:
    """Runs tries; a subclass with a `name` registers itself."""

    name: ClassVar[str] = ""
    is_here: ClassVar[bool] = True
    """Whether tries run on this machine, whose time and memory are watched from here."""
    known: ClassVar[dict[str, type[Executor]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the name; two of one name are a mistake of ours."""
        if cls.name in Executor.known:
            raise TypeError(f"two executors are named {cls.name!r}")
        Executor.known[cls.name] = cls

    def __init__(self, room: Room) -> None:
        self.room = room

    def has_room(self, cores: int) -> bool:
        """Whether a try that takes so many NeuronCores could start now."""
        raise NotImplementedError

    def start(self, work: Work) -> None:
        """Begin a try; never waits for its end."""
        raise NotImplementedError

    def results(self, patience_s: float) -> list[Result]:
        """Give what has ended since; waits so long for the first."""
        raise NotImplementedError

    def memory(self) -> Mapping[str, int]:
        """Give the bytes that each try on this machine holds now, under "" those of workers that wait for one.

        Empty where others see to it.
        """
        return {}

    def stop(self, id: str, why: str) -> None:
        """End a try with all that it started; its result then has this reason."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything that still runs."""
        raise NotImplementedError


def executor_names() -> list[str]:
    """Give the executors there are, without importing one."""
    from shapeguard.warmup import executors

    return names(executors)


def demand_known(name: str) -> None:
    """Refuse an executor that there is none of."""
    if name not in executor_names():
        raise UsageError(f"there is no executor {name!r}", hint=f"there are: {', '.join(executor_names())}")


def open_executor(name: str, room: Room) -> Executor:
    """Give an executor by its name."""
    demand_known(name)
    import_module(f"shapeguard.warmup.executors.{name}")
    return Executor.known[name](room)
