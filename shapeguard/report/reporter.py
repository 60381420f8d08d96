"""The interface of a reporter: a pure function from a report to text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shapeguard.core.errors import ConfigError
from shapeguard.core.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a reporter may draw."""

    color: bool = False
    width: int = 100
    """Columns of the terminal."""


class Reporter:
    """Renders a report in one format; a subclass with a `name` registers itself."""

    name: ClassVar[str] = ""
    """What `--output-format` calls it."""
    known: ClassVar[dict[str, type[Reporter]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the format; two of one name are a mistake of ours."""
        if not cls.name:
            raise TypeError(f"{cls.__name__} has no name")
        if cls.name in Reporter.known:
            raise TypeError(f"two reporters are named {cls.name!r}")
        Reporter.known[cls.name] = cls

    def render(self, report: Report, style: Style) -> str:
        """Give the whole output, with its last newline."""
        raise NotImplementedError


def reporter(name: str) -> Reporter:
    """Give the reporter of that name; `ConfigError` names those there are."""
    from shapeguard.core.plugins import load
    from shapeguard.report import formats

    load(formats)
    if name not in Reporter.known:
        raise ConfigError(f"unknown output format {name!r}", hint=f"use one of: {', '.join(sorted(Reporter.known))}")
    return Reporter.known[name]()
