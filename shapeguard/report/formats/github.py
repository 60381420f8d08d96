"""Workflow commands that GitHub shows as annotations.

GitHub shows ten a type and step and drops the rest without a word. So at most ten are printed, the gravest first, and
the tenth says how many more there are; the whole list goes to the step's summary, see `report/write.py`.
"""

from __future__ import annotations

from shapeguard.core.finding import Finding, Problem, Severity
from shapeguard.core.report import Report
from shapeguard.report.render import listing
from shapeguard.report.reporter import Reporter, Style

LIMIT = 10
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_ORDER = list(_COMMANDS)


class GitHub(Reporter):
    """Annotations of a pull request."""

    name = "github"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give at most ten annotations; nothing where there is nothing to say."""
        shown = [finding for finding in (*report.findings, *report.annotations) if finding.suppressed is None]
        shown.sort(key=lambda finding: _ORDER.index(finding.severity))
        title = f"shapeguard {report.tool}".strip()
        listed = [_defused(line) for line in listing(report)]
        rows = [_problem(problem, title, style.root) for problem in report.problems]
        rows += [_finding(finding, style.root) for finding in shown]
        if len(rows) > LIMIT:
            left = len(rows) - LIMIT + 1
            text = (
                f"{left} more are not shown here, since GitHub shows {LIMIT} a step; the step's summary lists them all"
            )
            rows = [*rows[: LIMIT - 1], f"::{_command(rows[LIMIT - 1])} title=shapeguard::{_data(text)}"]
        return "".join(f"{row}\n" for row in [*listed, *rows])


def _defused(line: str) -> str:
    """Let no name in a list be read as one of GitHub's commands."""
    return line.replace("::", ": :").replace("##[", "# #[")


def _command(row: str) -> str:
    return row[2:].split(" ", 1)[0]


def _finding(finding: Finding, root: str) -> str:
    span = finding.span
    # In a notebook lines count in the cell; GitHub only knows lines of the JSON.
    is_place_known = finding.cell is None
    properties = {"title": f"shapeguard ({finding.code})", "file": relative(finding.path, root)}
    if is_place_known:
        properties |= {"line": str(span.line), "endLine": str(span.end_line)}
        if span.line == span.end_line:
            properties |= {"col": str(span.column), "endColumn": str(span.end_column)}
    where = "" if is_place_known else f"cell {finding.cell}, line {span.line}: "
    return _annotation(_COMMANDS[finding.severity], properties, f"{where}{finding.message}")


def _problem(problem: Problem, title: str, root: str) -> str:
    properties = {
        "title": f"shapeguard ({problem.code})" if problem.code else title,
        "file": relative(problem.path, root),
    }
    if problem.line:
        properties["line"] = str(problem.line)
    return _annotation("error", properties, problem.message)


def _annotation(command: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{command} {listed}::{_data(message)}"


def relative(path: str, root: str) -> str:
    """The path from the root of the repository, which is how GitHub names files."""
    return path.removeprefix(root.rstrip("/") + "/") if root else path


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
