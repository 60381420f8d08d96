"""SARIF 2.1.0, for GitHub code scanning and its like."""

from __future__ import annotations

import json
from urllib.parse import quote

from shapeguard import __version__
from shapeguard.core.finding import Edit, Finding, Problem, Severity
from shapeguard.core.links import rule_url
from shapeguard.core.report import JSON, Report
from shapeguard.core.rules import RuleEntry
from shapeguard.report.reporter import Reporter, Style

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


class Sarif(Reporter):
    """One run with its rules, results, fixes and suppressions; written also when there is nothing to tell."""

    name = "sarif"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give the whole log."""
        log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report, style.root)]}
        return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _run(report: Report, root: str) -> dict[str, JSON]:
    indexes = {rule.code: index for index, rule in enumerate(report.rules)}
    rules: list[JSON] = [_rule(rule) for rule in report.rules]
    driver: dict[str, JSON] = {
        "name": "shapeguard",
        "semanticVersion": __version__,
        "version": __version__,
        "rules": rules,
    }
    return {
        "tool": {"driver": driver},
        # Uploads of one tool under one id replace each other: lint and budget must not close each other's alerts.
        "automationDetails": {"id": f"shapeguard/{report.tool or 'report'}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the repository."}}},
        "invocations": [_invocation(report, root)],
        "results": [_result(finding, indexes, root) for finding in (*report.findings, *report.annotations)],
    }


def _rule(rule: RuleEntry) -> dict[str, JSON]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.documentation or rule.message, "markdown": rule.documentation or rule.message},
        "helpUri": rule_url(rule.code),
        "defaultConfiguration": {"level": _LEVEL[rule.severity], "enabled": rule.on_by_default},
    }


def _invocation(report: Report, root: str) -> dict[str, JSON]:
    return {
        "executionSuccessful": report.exit_code in (0, 1),
        "exitCode": int(report.exit_code),
        "toolExecutionNotifications": [_notification(problem, root) for problem in report.problems],
    }


def _notification(problem: Problem, root: str) -> dict[str, JSON]:
    place: dict[str, JSON] = {"artifactLocation": _artifact(problem.path, root)}
    if problem.line:
        place["region"] = {"startLine": problem.line}
    notification: dict[str, JSON] = {
        "level": "error",
        "message": {"text": problem.message},
        "locations": [{"physicalLocation": place}],
    }
    return {**notification, "descriptor": {"id": problem.code}} if problem.code else notification


def _result(finding: Finding, indexes: dict[str, int], root: str) -> dict[str, JSON]:
    result: dict[str, JSON] = {
        "ruleId": finding.code,
        "level": _LEVEL[finding.severity],
        "message": {"text": finding.message},
        "locations": [_location(finding, root)],
        # Given for each, since a viewer takes a missing list for "unknown" as soon as one result has it.
        "suppressions": _suppressions(finding),
    }
    if finding.code in indexes:
        result["ruleIndex"] = indexes[finding.code]
    if finding.fingerprint:
        result["partialFingerprints"] = {"shapeguardLine/v1": finding.fingerprint}
    if fix := _fix(finding, root):
        result["fixes"] = [fix]
    return result


def _suppressions(finding: Finding) -> list[JSON]:
    if finding.suppressed is None:
        return []
    return [{"kind": "inSource", **({"justification": finding.suppressed} if finding.suppressed else {})}]


def _location(finding: Finding, root: str) -> dict[str, JSON]:
    span = finding.span
    place: dict[str, JSON] = {"artifactLocation": _artifact(finding.path, root)}
    if finding.cell is not None:
        # Lines count in the cell, which a region of the JSON file cannot say.
        name = f"cell {finding.cell}, line {span.line}"
        return {"physicalLocation": place, "logicalLocations": [{"name": name, "kind": "member"}]}
    region = _region(span.line, span.column, span.end_line, span.end_column)
    if finding.excerpt:
        region["snippet"] = {"text": "\n".join(finding.excerpt)}
    return {"physicalLocation": {**place, "region": region}}


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, JSON]:
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(finding: Finding, root: str) -> dict[str, JSON]:
    fix = finding.fix
    # Edits in a notebook lie in a cell's source, not in the file that SARIF would have changed.
    if fix is None or not fix.edits or finding.cell is not None or not all(edit.line for edit in fix.edits):
        return {}
    change: dict[str, JSON] = {
        "artifactLocation": _artifact(finding.path, root),
        "replacements": [_replacement(edit) for edit in fix.edits],
    }
    grade = "safe" if fix.safe else "unsafe"
    return {"description": {"text": f"{fix.message} ({grade})"}, "artifactChanges": [change]}


def _replacement(edit: Edit) -> dict[str, JSON]:
    region = _region(edit.line, edit.column, edit.end_line, edit.end_column)
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _artifact(path: str, root: str) -> dict[str, JSON]:
    inside = path.removeprefix(root.rstrip("/") + "/") if root else path
    if inside.startswith("/"):
        return {"uri": f"file://{quote(inside)}"}
    return {"uri": quote(inside), "uriBaseId": "%SRCROOT%"}
