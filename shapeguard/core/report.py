"""A reporter's only input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from shapeguard.core.errors import Exit
from shapeguard.core.finding import Finding, Problem
from shapeguard.core.rules import RuleEntry

JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings; a column of `right` is set flush right."""

    title: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    note: str = ""
    """One line under the table: what was left out, what a mark means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph; `strong` for the verdict."""

    text: str
    strong: bool = False
    is_verbatim: bool = False
    """Written as it is: a diff, a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a command found out: findings about places, and sections to read."""

    tool: str
    """The command, "lint" or "trace": names the report in SARIF and Markdown."""
    sections: tuple[Table | Text, ...] = ()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    page: Mapping[str, JSON] = field(default_factory=dict)
    """What a page draws and lets open: the document of a run with its words, time line and costs."""
    annotations: tuple[Finding, ...] = ()
    """What formats that mark lines of code (SARIF, GitHub) tell besides; people read it in the sections."""
    document: Mapping[str, JSON] = field(default_factory=dict)
    """What the JSON format writes; empty: made from findings, problems and totals."""
    when_quiet: tuple[Table | Text, ...] | None = None
    """What `-q` leaves of the sections on the terminal; None: all. Files always have all."""
    is_listing: bool = False
    """All it says stands in its sections, so that formats of a line a finding write these."""
    rows: Sequence[JSON] = ()
    """What a listing is in a line each, for programs; empty: its document is one line."""
    totals: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[RuleEntry, ...] = ()
    """The rules that findings may name, for formats that explain them."""
    summary: tuple[str, ...] = ()
    """The last lines for people: what was found and what to do next."""
    notes: tuple[str, ...] = ()
    """Remarks on the run itself; they go to standard error, so that no format has to carry them."""
    exit_code: int = Exit.CLEAN
    """An `Exit`, or the code of the program that was run."""
