"""Markdown for a pull request or GitHub's step summary."""

from __future__ import annotations

from collections.abc import Iterator

from shapeguard.core.finding import Finding, Problem
from shapeguard.core.report import Report, Table, Text
from shapeguard.report.render import printable
from shapeguard.report.reporter import Reporter, Style

MAX_BYTES = 1_000_000
"""GitHub refuses a step summary of 1 MiB."""


class Markdown(Reporter):
    """Sections, findings and problems as tables."""

    name = "markdown"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give the whole report, cut at whole lines where it would be too large for GitHub."""
        blocks = [f"## shapeguard {report.tool}".rstrip()]
        blocks += ["\n".join(_section(part)) for part in report.sections]
        shown = [finding for finding in report.findings if finding.suppressed is None]
        if shown:
            blocks.append("\n".join(["| where | code | what |", "|---|---|---|", *map(_finding, shown)]))
        if report.problems:
            blocks.append("\n".join(["**Problems**", "", *map(_problem, report.problems)]))
        if not shown and not report.problems and not report.sections:
            blocks.append("No findings.")
        if report.summary:
            blocks.append("  \n".join(map(_text, report.summary)))
        return _cut("\n\n".join(blocks) + "\n")


def _section(part: Table | Text) -> Iterator[str]:
    if isinstance(part, Text):
        if part.is_verbatim:
            yield f"````text\n{part.text.rstrip()}\n````"
        elif "\n" in part.text:
            yield f"````text\n{_block(part.text)}\n````"
        else:
            yield f"**{_text(part.text)}**" if part.strong else _text(part.text)
        return
    if part.title:
        yield f"### {_text(part.title)}"
        yield ""
    if part.rows:
        yield _row(part.columns)
        yield _row(["---:" if index in part.right else "---" for index in range(len(part.columns))])
        yield from map(_row, part.rows)
    if part.note:
        yield ""
        yield _text(part.note)


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _finding(finding: Finding) -> str:
    cell = f", cell {finding.cell}" if finding.cell is not None else ""
    where = f"{finding.path}{cell}, line {finding.span.line}"
    return f"| {_code(where)} | {finding.code} | {_cell(finding.message)} |"


def _problem(problem: Problem) -> str:
    line = f", line {problem.line}" if problem.line else ""
    return f"- {_code(problem.path + line)}: {_text(problem.message)}"


def _code(text: str) -> str:
    """Code in a table cell: a path may hold backticks and bars."""
    text = printable(text).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _block(text: str) -> str:
    """Give lines as they stand, without what would end the block they stand in."""
    return "\n".join(printable(line).replace("````", "'''") for line in text.splitlines())


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|").replace("\n", "<br>")


def _text(text: str) -> str:
    return printable(text.replace("\n", " ")).replace("<", "&lt;")


def _cut(text: str) -> str:
    if len(text.encode("utf-8", "replace")) <= MAX_BYTES:
        return text
    kept = text.encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore").rpartition("\n")[0]
    left = text.count("\n") - kept.count("\n")
    return f"{kept}\n\n{left:,} more lines did not fit; `shapeguard` prints them all.\n"
