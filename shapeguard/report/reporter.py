"""The interface of a reporter: a pure function from a report to text."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from shapeguard.core.errors import ConfigError
from shapeguard.core.plugins import names
from shapeguard.core.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a reporter may draw."""

    color: bool = False
    width: int = 100
    """Columns of the terminal."""
    root: str = ""
    """Folder that formats for other programs count paths from: the working directory."""
    quiet: bool = False
    """Findings and problems only: no summary, no hints."""
    verbose: int = 0
    """How often `-v` was given."""


class Reporter:
    """Renders a report in one format; a subclass with a `name` registers itself.

    The file of a format is called what the format is called, so that only the one asked for is imported.
    """

    name: ClassVar[str] = ""
    """What `--output-format` calls it."""
    for_programs: ClassVar[bool] = False
    """Read by programs: always UTF-8, never coloured."""
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


def format_names() -> tuple[str, ...]:
    """The formats there are, without importing one."""
    from shapeguard.report import formats

    return tuple(name.replace("_", "-") for name in names(formats))


def reporter(name: str) -> Reporter:
    """Give the reporter of that name; `ConfigError` names those there are."""
    if name not in format_names():
        raise ConfigError(f"unknown output format {name!r}", hint=f"use one of: {', '.join(format_names())}")
    import_module(f"shapeguard.report.formats.{name.replace('-', '_')}")
    return Reporter.known[name]()
