"""One line a finding: `path:line:column: CODE message`."""

from __future__ import annotations

from shapeguard.core.finding import Finding
from shapeguard.core.report import Report
from shapeguard.report.render import Paint, listing, place, printable, problem_line
from shapeguard.report.reporter import Reporter, Style


class Concise(Reporter):
    """For editors and for `grep`."""

    name = "concise"

    def render(self, report: Report, style: Style) -> str:
        """Give a line a finding, a line a problem, and the sum."""
        paint = Paint(style.color)
        lines = listing(report)
        lines += [_line(finding, paint) for finding in report.findings if finding.suppressed is None]
        lines += [problem_line(problem, paint) for problem in report.problems]
        if not style.quiet:
            lines += report.summary
        return "".join(f"{line}\n" for line in lines)


def _line(finding: Finding, paint: Paint) -> str:
    mark = "[*] " if finding.fix is not None and finding.fix.edits and finding.fix.safe else ""
    code = paint.severity(finding.code, finding.severity)
    return f"{printable(place(finding))}: {code} {mark}{printable(finding.message)}"
