"""JSON, one finding a line."""

from __future__ import annotations

import json

from shapeguard.core.report import JSON, Report
from shapeguard.report.plain import plain, plain_problem
from shapeguard.report.reporter import Reporter, Style


class JsonLines(Reporter):
    """One finding a line, for other programs; a problem's line has no `column`."""

    name = "json-lines"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give a line a finding, then a line a problem."""
        rows: list[dict[str, JSON]] = [plain(finding) for finding in report.findings if finding.suppressed is None]
        rows += [plain_problem(problem) for problem in report.problems]
        listed = report.rows or ([report.document] if report.is_listing and report.document else [])
        return "".join(json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in [*listed, *rows])
