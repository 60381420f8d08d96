"""What a check says about a place in a file, and the edits that mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters; only errors and warnings make a command exit 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of a file: byte offsets, and lines and columns that count from 1."""

    start: int
    """Offset of the first byte in the file (in a notebook: in the cell's source)."""
    end: int
    """Offset after the last byte."""
    line: int
    column: int
    """Column in characters, from 1."""
    end_line: int
    end_column: int
    """Column after the last character, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace the bytes `start:end` by `text`; lines and columns say the same place, 0 where nobody computed them."""

    start: int
    end: int
    text: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Edits that mend a finding together, or `needs`: what the user must give first."""

    message: str
    """What the fix does, in a few words: "add `drop_last=True`"."""
    edits: tuple[Edit, ...] = ()
    safe: bool = False
    """Keeps behaviour on every device; an unsafe one needs `--unsafe-fixes`."""
    needs: str = ""
    """What is missing before the fix can be applied: "a length in `[[tool.shapeguard.lint.lengths]]`"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check says about one place."""

    code: str
    path: str
    """As the user gave it, with forward slashes."""
    span: Span
    message: str
    severity: Severity = Severity.WARNING
    fix: Fix | None = None
    cell: int | None = None
    """Number of the code cell in a notebook, from 1; lines then count in the cell."""
    excerpt: tuple[str, ...] = ()
    """The lines of the source from `span.line` on, since reporters never read the file."""
    fingerprint: str = ""
    """Digest of code, path and the text of the line, which survives moves of the line."""
    suppressed: str | None = None
    """The reason given in an ignore comment (may be empty), or None where nothing suppresses it."""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What could not be done: a file that does not parse, a rank without an end."""

    path: str
    message: str
    line: int = 0
    """Line in the file, from 1; 0 where there is none."""
    code: str = ""
    """Code by which it can be ignored, where there is one."""


def is_applicable(finding: Finding, *, unsafe: bool) -> bool:
    """Whether the finding's fix may be applied."""
    fix = finding.fix
    if fix is None or finding.suppressed is not None:
        return False
    return bool(fix.edits) and not fix.needs and (fix.safe or unsafe)
