"""What the formats for people share: colour, column widths, code frames, tables."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator

from shapeguard.core.finding import Finding, Problem, Severity
from shapeguard.core.report import Report, Table, Text

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "yellow": "1;33",
    "blue": "1;34",
    "cyan": "36",
    "green": "32",
}
_SEVERITY_COLOR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
_TAB = 4
"""Columns a tab is shown as, so that the marks under a line stand right in every terminal."""
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != 0x09}
# Writing from right to left hides what a line really says (CVE-2021-42574).
_CONTROL |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}


class Paint:
    """Colours words, or leaves them alone."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, name: str) -> str:
        """Give the text in that colour."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.color and text else text

    def severity(self, text: str, severity: Severity) -> str:
        """Give the text in the colour of how much it matters."""
        return self(text, _SEVERITY_COLOR[severity])


def printable(text: str) -> str:
    """Show control characters instead of sending them to the terminal; a file's text is not to be trusted."""
    return text.translate(_CONTROL)


def width(text: str) -> int:
    """Columns that a terminal gives the text."""
    if text.isascii():
        return len(text)
    return sum(_width_of(character) for character in text)


def _width_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def place(finding: Finding) -> str:
    """Where a finding stands, as editors understand it: `path:line:column`, with `cell N` in a notebook."""
    cell = f":cell {finding.cell}" if finding.cell is not None else ""
    return f"{finding.path}{cell}:{finding.span.line}:{finding.span.column}"


def problem_line(problem: Problem, paint: Paint) -> str:
    """What could not be done, on one line."""
    line = f":{problem.line}" if problem.line else ""
    code = f" ({problem.code})" if problem.code else ""
    return f"{paint('problem', 'red')} {printable(problem.path)}{line}: {printable(problem.message)}{code}"


def frame(finding: Finding, paint: Paint, *, columns: int, limit: int = 4) -> Iterator[str]:
    """Draw the lines of a finding with marks under what is meant; long ones are cut."""
    span = finding.span
    if span.column > len(finding.excerpt[0]) + 1:
        # A line of thousands of characters is kept only in part.
        return
    number = len(str(span.line + min(len(finding.excerpt), limit)))
    gutter = paint(f"{'':{number}} |", "cyan")
    yield gutter
    for index, raw in enumerate(finding.excerpt[:limit]):
        line = printable(raw.expandtabs(_TAB))
        first = _column(raw, span.column - 1) if index == 0 else width(line) - width(line.lstrip())
        last_line = span.line + index == span.end_line
        last = _column(raw, span.end_column - 1) if last_line else width(line.rstrip())
        line, first, last = _cut(line, first, max(last, first + 1), columns - number - 3)
        yield f"{paint(f'{span.line + index:>{number}} |', 'cyan')} {line}".rstrip()
        # Under the first line only: marks between the lines of a long call would hide it.
        if index == 0:
            yield f"{gutter} {' ' * first}{paint.severity('^' * (last - first), finding.severity)}"
        if last_line:
            break
    if span.end_line - span.line + 1 > limit and len(finding.excerpt) >= limit:
        yield f"{gutter} {paint(f'… to line {span.end_line}', 'dim')}"
    yield gutter


def _column(raw: str, index: int) -> int:
    """The column on the screen of a character of a line."""
    return width(printable(raw[:index].expandtabs(_TAB)))


def _cut(line: str, first: int, last: int, room: int) -> tuple[str, int, int]:
    """Cut a line that is far too long around what is marked in it."""
    room = max(room, 40)
    if width(line) <= max(room, 200) or not line.isascii():
        return line, first, last
    start = max(0, first - room // 3)
    shown = line[start : start + room]
    lead = "…" if start else ""
    tail = "…" if start + room < len(line) else ""
    first, last = first - start + len(lead), min(last - start, room) + len(lead)
    return f"{lead}{shown}{tail}", first, max(last, first + 1)


def section(part: Table | Text, paint: Paint, *, columns: int) -> Iterator[str]:
    """Draw a table or a paragraph."""
    if isinstance(part, Table):
        yield from table(part, paint)
        return
    for line in part.text.splitlines() or [""]:
        lead = line[: len(line) - len(line.lstrip())]
        wrapped = textwrap.wrap(line, width=max(40, columns), subsequent_indent=lead, break_long_words=False,
                                break_on_hyphens=False)  # fmt: skip
        for piece in wrapped or [""]:
            yield paint(piece, "bold") if part.strong else piece


def listing(report: Report) -> list[str]:
    """Give what a listing says, a row a line with tabs between its cells; nothing for other reports."""
    lines: list[str] = []
    for part in report.sections if report.is_listing else ():
        if isinstance(part, Table):
            lines += ["\t".join(printable(cell) for cell in row) for row in part.rows]
            lines += [printable(part.note)] if part.note else []
        else:
            lines += part.text.splitlines() if part.is_verbatim else map(printable, part.text.splitlines())
    return lines


def table(part: Table, paint: Paint) -> Iterator[str]:
    """Draw a table; the last column is not filled up."""
    if part.title:
        yield paint(part.title, "bold")
    if part.rows:
        rows = [tuple(printable(cell) for cell in row) for row in part.rows]
        widths = [max(width(row[i]) for row in (part.columns, *rows)) for i in range(len(part.columns))]
        heads = _row(part.columns, widths, part.right)
        if heads.strip():
            yield paint(heads, "dim")
        for row in rows:
            yield _row(row, widths, part.right)
    if part.note:
        yield paint(part.note, "dim")


def _row(cells: Iterable[str], widths: list[int], right: frozenset[int]) -> str:
    parts = []
    for index, (cell, size) in enumerate(zip(cells, widths, strict=True)):
        fill = " " * (size - width(cell))
        parts.append(fill + cell if index in right else cell + fill)
    return "  ".join(parts).rstrip()


def counted(number: int, noun: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
