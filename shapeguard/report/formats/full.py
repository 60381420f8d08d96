"""For people: sections, then each finding with its line and what would mend it."""

from __future__ import annotations

from collections.abc import Iterator

from shapeguard.core.finding import Finding
from shapeguard.core.report import Report, Text
from shapeguard.report.render import Paint, frame, place, printable, problem_line, section
from shapeguard.report.reporter import Reporter, Style


class Full(Reporter):
    """Findings with a code frame each; the default."""

    name = "full"

    def render(self, report: Report, style: Style) -> str:
        """Give sections, findings, problems and the sum, each after an empty line."""
        if verbatim := [part.text for part in report.sections if isinstance(part, Text) and part.is_verbatim]:
            return "".join(verbatim)
        paint = Paint(style.color)
        blocks = ["\n".join(section(part, paint, columns=style.width)) for part in report.sections]
        blocks += [
            "\n".join(_finding(finding, paint, style)) for finding in report.findings if finding.suppressed is None
        ]
        if report.problems:
            blocks.append("\n".join(problem_line(problem, paint) for problem in report.problems))
        if report.summary and not style.quiet:
            blocks.append("\n".join(report.summary))
        return "\n\n".join(blocks) + "\n" if blocks else ""


def _finding(finding: Finding, paint: Paint, style: Style) -> Iterator[str]:
    yield f"{paint.severity(finding.code, finding.severity)} {paint(printable(finding.message), 'bold')}"
    yield f"  {paint('-->', 'cyan')} {printable(place(finding))}"
    if finding.excerpt:
        yield from frame(finding, paint, columns=style.width)
    if finding.fix is not None:
        yield f"  {paint('fix:', 'green')} {printable(finding.fix.message)}{_grade(finding)}"


def _grade(finding: Finding) -> str:
    fix = finding.fix
    assert fix is not None
    if fix.needs:
        return f" (needs {fix.needs})"
    if not fix.edits:
        return ""
    return " (--fix)" if fix.safe else " (--fix --unsafe-fixes)"
