"""Verdicts as JSON values: between processes, and in the result cache. Never pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapeguard.core.finding import Edit, Finding, Fix, Problem, Severity, Span
from shapeguard.lint.task import Verdict

_SPAN = ("start", "end", "line", "column", "end_line", "end_column")
_EDIT = ("start", "end", "text", "line", "column", "end_line", "end_column")


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Give a verdict as JSON values; paths are left out, since equal files elsewhere have equal verdicts."""
    row: dict[str, Any] = {}
    if verdict.findings:
        row["findings"] = [_finding(finding) for finding in verdict.findings]
    if verdict.problems:
        row["problems"] = [[problem.line, problem.message] for problem in verdict.problems]
    if verdict.fixed:
        row["fixed"] = list(verdict.fixed)
    if verdict.new_data is not None:
        row["data"] = verdict.new_data.decode("latin-1")
    if verdict.timing:
        row["timing"] = dict(verdict.timing)
    return row


def from_json(row: Mapping[str, Any], path: str) -> Verdict:
    """Give the verdict of a file; anything but what `to_json` wrote raises KeyError, TypeError or ValueError."""
    data = row.get("data")
    return Verdict(
        findings=tuple(_to_finding(item, path) for item in row.get("findings", ())),
        problems=tuple(Problem(path=path, line=int(line), message=str(text)) for line, text in row.get("problems", ())),
        fixed=tuple(row.get("fixed", ())),
        new_data=None if data is None else data.encode("latin-1"),
        timing=dict(row.get("timing", {})),
    )


def _finding(finding: Finding) -> dict[str, Any]:
    row: dict[str, Any] = {
        "code": finding.code,
        "span": [getattr(finding.span, name) for name in _SPAN],
        "message": finding.message,
        "severity": str(finding.severity),
        "excerpt": list(finding.excerpt),
        "cell": finding.cell,
        "suppressed": finding.suppressed,
    }
    if finding.fix is not None:
        fix = finding.fix
        edits = [[getattr(edit, name) for name in _EDIT] for edit in fix.edits]
        row["fix"] = {"message": fix.message, "safe": fix.safe, "needs": fix.needs, "edits": edits}
    return row


def _to_finding(row: Mapping[str, Any], path: str) -> Finding:
    fix = row.get("fix")
    return Finding(
        code=row["code"],
        path=path,
        span=Span(**dict(zip(_SPAN, row["span"], strict=True))),
        message=row["message"],
        severity=Severity(row["severity"]),
        fix=None if fix is None else _to_fix(fix),
        cell=row["cell"],
        excerpt=tuple(row["excerpt"]),
        suppressed=row["suppressed"],
    )


def _to_fix(row: Mapping[str, Any]) -> Fix:
    return Fix(
        message=row["message"],
        safe=row["safe"],
        needs=row["needs"],
        edits=tuple(Edit(**dict(zip(_EDIT, edit, strict=True))) for edit in row["edits"]),
    )
