"""Findings and reports as plain values, the same in every format for programs."""

from __future__ import annotations

from shapeguard.core.finding import Edit, Finding, Problem
from shapeguard.core.report import JSON, Report

SCHEMA = 1


def document(report: Report) -> dict[str, JSON]:
    """Give findings, problems and totals; suppressed findings are only counted."""
    return {
        "schema": SCHEMA,
        "findings": [plain(finding) for finding in report.findings if finding.suppressed is None],
        "problems": [plain_problem(problem) for problem in report.problems],
        "totals": dict(report.totals),
    }


def plain(finding: Finding) -> dict[str, JSON]:
    """Give one finding; `cell` only in notebooks."""
    fix = finding.fix
    span = finding.span
    row: dict[str, JSON] = {
        "code": finding.code,
        "path": finding.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "severity": str(finding.severity),
        "message": finding.message,
        "url": finding.url,
        "fingerprint": finding.fingerprint,
        "fix": None
        if fix is None
        else {
            "message": fix.message,
            "safe": fix.safe,
            "needs": fix.needs,
            "edits": [plain_edit(edit) for edit in fix.edits],
        },
    }
    if finding.cell is not None:
        row["cell"] = finding.cell
    return row


def plain_edit(edit: Edit) -> dict[str, JSON]:
    """Give one edit: bytes of the file (in a notebook: of the cell), and the same place in lines and columns."""
    return {
        "start": edit.start,
        "end": edit.end,
        "line": edit.line,
        "column": edit.column,
        "end_line": edit.end_line,
        "end_column": edit.end_column,
        "text": edit.text,
    }


def plain_problem(problem: Problem) -> dict[str, JSON]:
    """Give one problem; `line` is 0 where there is none."""
    row: dict[str, JSON] = {"path": problem.path, "line": problem.line, "message": problem.message}
    return {**row, "code": problem.code} if problem.code else row
