"""The causes of a run as findings at lines, for formats that mark code: SARIF and GitHub's annotations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from shapeguard.core.finding import Finding, Severity, Span
from shapeguard.core.links import rule_url
from shapeguard.runs.causes import Cause
from shapeguard.runs.tables import cost, what

OTHER = "SGRUN"
"""Stands where no rule of the linter finds such code before a run."""


def marks(causes: Sequence[Cause]) -> tuple[Finding, ...]:
    """Give one finding a cause that has a line."""
    return tuple(_mark(cause) for cause in causes if cause.site is not None)


def _mark(cause: Cause) -> Finding:
    assert cause.site is not None
    code = cause.rules[0] if cause.rules else OTHER
    line = max(1, cause.site.line)
    name = f"{code} {cause.site.file} {cause.kind} {cause.input} {cause.dim}"
    return Finding(
        code=code,
        path=cause.site.file,
        # A run knows lines, not columns: the whole line is meant.
        span=Span(start=0, end=0, line=line, column=1, end_line=line, end_column=2),
        message=f"{cost(cause)}: {what(cause)}; {cause.advice}",
        severity=_severity(cause),
        fingerprint=hashlib.sha256(name.encode()).hexdigest()[:16],
        url=rule_url(code) if cause.rules else "",
    )


def _severity(cause: Cause) -> Severity:
    if cause.kind == "mode" or not (cause.count or cause.eager):
        return Severity.NOTE
    return Severity.WARNING
