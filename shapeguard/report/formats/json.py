"""JSON for other programs: sorted keys, a schema number, a final newline."""

from __future__ import annotations

import json
from typing import Any

from shapeguard.core.finding import Finding
from shapeguard.core.report import Report
from shapeguard.report.reporter import Reporter, Style


class Json(Reporter):
    """One JSON object."""

    name = "json"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give the report's own document, or one made from its findings."""
        body = report.document or document(report)
        return json.dumps(body, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """Give findings, problems and totals as plain values."""
    return {
        "schema": 1,
        "findings": [plain(finding) for finding in report.findings],
        "problems": [{"path": p.path, "line": p.line, "message": p.message} for p in report.problems],
        "totals": dict(report.totals),
    }


def plain(finding: Finding) -> dict[str, Any]:
    """Give one finding as plain values; `cell` only in notebooks."""
    fix = finding.fix and {
        "message": finding.fix.message,
        "safe": finding.fix.safe,
        "needs": finding.fix.needs,
        "edits": [{"start": e.start, "end": e.end, "text": e.text} for e in finding.fix.edits],
    }
    span = finding.span
    row = {
        "code": finding.code,
        "path": finding.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "severity": str(finding.severity),
        "message": finding.message,
        "url": finding.url,
        "fix": fix,
    }
    if finding.cell is not None:
        row["cell"] = finding.cell
    return row
