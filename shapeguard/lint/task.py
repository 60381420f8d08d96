"""One file to be judged, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from shapeguard.core.finding import Finding, Problem
from shapeguard.lint.visit import Lengths

FixMode = Literal["off", "safe", "unsafe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One file and how it is to be judged."""

    path: str
    """As it is shown."""
    is_notebook: bool = False
    codes: frozenset[str] = frozenset()
    """The codes that are checked in this file."""
    neuron: bool | None = True
    """Whether the file is for Neuron; None: the file itself shows it."""
    lengths: Lengths | None = None
    transformers: tuple[int, int] | None = None
    fix: FixMode = "off"
    must_parse: bool = False
    """Parse the file even if no rule can speak in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found in one file."""

    findings: tuple[Finding, ...] = ()
    """Suppressed ones too."""
    problems: tuple[Problem, ...] = ()
    fixed: tuple[str, ...] = ()
    """Codes of the findings that were mended."""
    new_data: bytes | None = None
    """The mended file, where a fix changed it."""
    timing: dict[str, float] = field(default_factory=dict)
    """Seconds by stage."""
