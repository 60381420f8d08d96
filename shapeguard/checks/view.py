"""A check as a report: the table, the findings, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from shapeguard.checks.budget import Row
from shapeguard.checks.judge import FALLBACK, NEW, OVER, STALE, UNUSED, Verdict, because, counts, number
from shapeguard.checks.reasons import Reason
from shapeguard.core.errors import Exit, UsageError
from shapeguard.core.finding import Severity
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.core.rules import RuleEntry
from shapeguard.lock.values import eager_text

SCHEMA = 1
_MOST_LISTED = 40
SIMULATED = "Simulated: counted on this machine after what is known of TorchNeuron, never run on Trainium."
_RULES = (
    (
        NEW,
        "A graph that the lock does not have",
        "Something changed what is compiled; the message says what and where.",
    ),
    (UNUSED, "A graph of the lock that was not seen", "Run `shapeguard lock` so that the lock says what is needed."),
    (OVER, "More than the budget allows", "The limits stand in `[tool.shapeguard.jobs.NAME.budget]`."),
    (STALE, "A lock that does not fit the configuration", "Run `shapeguard lock` and commit the file."),
    (FALLBACK, "An operator that runs on the host", "It has no kernel on Neuron: its data travels both ways."),
)
RULES = tuple(
    RuleEntry(code=code, name=code, message=message, severity=Severity.ERROR, documentation=f"{message}.\n\n{page}")
    for code, message, page in _RULES
)


def report(verdicts: Sequence[Verdict], *, notes: Iterable[str] = (), is_static: bool = False) -> Report:
    """Give the report of a check of several jobs."""
    findings = tuple(finding for verdict in verdicts for finding in verdict.findings)
    errors = sum(finding.severity == Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    problems = tuple(problem for verdict in verdicts for problem in verdict.problems)
    simulated = () if is_static else (Text(text=SIMULATED),)
    return Report(
        tool="check",
        sections=(table(verdicts), *simulated),
        findings=findings,
        problems=problems,
        document=document(verdicts),
        totals={"jobs": len(verdicts), "errors": errors, "warnings": warnings},
        rules=RULES,
        summary=tuple(_summary(verdicts, errors, warnings, is_static)),
        notes=tuple(notes),
        exit_code=Exit.FINDINGS if errors or problems else Exit.CLEAN,
    )


def table(verdicts: Sequence[Verdict]) -> Table:
    """Give the table of all that is counted."""
    rows = [_cells(row, verdict) for verdict in verdicts for row in verdict.rows if _matters(row)]
    return Table(columns=("name", "limit", "now", "change", "status"), rows=tuple(rows), right=frozenset({1, 2, 3}))


def _matters(row: Row) -> bool:
    return row.limit is not None or row.name in ("graphs", "eager") or bool(row.now) or bool(row.before)


def _cells(row: Row, verdict: Verdict) -> tuple[str, ...]:
    change = "" if row.before is None else _signed(row.now - row.before)
    return f"{row.job} {row.name}", number(row.limit), number(row.now), change, _status(row, verdict)


def _signed(value: float) -> str:
    return "0" if not value else f"{'+' if value > 0 else '-'}{number(abs(value))}"


def _status(row: Row, verdict: Verdict) -> str:
    parts = [row.status if not row.note or row.status != "waived" else row.note]
    if row.is_over and row.level == "warn":
        parts = [f"{row.status} (warns)"]
    found = verdict.difference
    if found is not None and row.name in ("graphs", "eager"):
        added, gone = (
            (len(found.added), len(found.gone))
            if row.name == "graphs"
            else (len(found.added_eager), len(found.gone_eager))
        )
        parts += [f"{added} new"] if added else []
        parts += [f"{gone} unused"] if gone else []
        parts += ["partial run"] if verdict.is_partial else []
    return ", ".join(part for part in parts if part) or "ok"


def _summary(verdicts: Sequence[Verdict], errors: int, warnings: int, is_static: bool) -> Iterable[str]:
    names = ", ".join(verdict.job for verdict in verdicts)
    if errors:
        said = f"{errors} error{'s' * (errors != 1)}"
        yield f"{said} in {names}" + (f", {warnings} warning{'s' * (warnings != 1)}" if warnings else "")
        if not is_static:
            yield "what each count holds: shapeguard check --why NAME; if the change is meant: shapeguard lock"
    elif any(verdict.problems for verdict in verdicts):
        yield "a program did not run to its end, so nothing is proven"
    else:
        what = "the lock fits the configuration and its limits" if is_static else "nothing new compiles"
        yield f"{names}: {what}" + (f" ({warnings} warning{'s' * (warnings != 1)})" if warnings else "")


def why(verdicts: Sequence[Verdict], name: str) -> Report:
    """List what a row of the table counts, and the cause of each that is new."""
    wanted = name.replace(".", " ", 1) if " " not in name else name
    known = {f"{row.job} {row.name}": (row, verdict) for verdict in verdicts for row in verdict.rows}
    short = {full.partition(" ")[2]: full for full in known} if len(verdicts) == 1 else {}
    by_job = [full for full in known if full.partition(" ")[0] == wanted]
    names = [wanted] if wanted in known else [short[wanted]] if wanted in short else by_job
    if not names:
        close = get_close_matches(wanted, [*known, *short], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
        raise UsageError(f"no row of the table is called {name!r}", hint=hint)
    base = report(verdicts)
    sections = tuple(_counted(*known[full]) for full in names)
    return Report(
        tool="check", sections=sections, problems=base.problems, document=base.document, exit_code=base.exit_code
    )


def _counted(row: Row, verdict: Verdict) -> Table:
    causes = _causes(verdict.reasons)
    cells = [(text, causes.get(text, "in the lock")) for text in row.counted]
    cells.sort(key=lambda cell: cell[1] == "in the lock")
    left = len(cells) - _MOST_LISTED
    return Table(
        title=f"{row.job} {row.name}: {number(row.now)}, limit {number(row.limit)}",
        columns=("what is counted", "cause"),
        rows=tuple(cells[:_MOST_LISTED]),
        note=f"{left} more" if left > 0 else "",
    )


def _causes(found: Iterable[Reason]) -> dict[str, str]:
    causes: dict[str, str] = {}
    for reason in found:
        for text in (*map(str, reason.graphs), *map(eager_text, reason.eager)):
            causes.setdefault(text, because(reason))
    return causes


def document(verdicts: Sequence[Verdict]) -> dict[str, JSON]:
    """Give the check as JSON."""
    from shapeguard.report.plain import plain, plain_problem

    return {
        "schema": SCHEMA,
        "rows": [_plain(row) for verdict in verdicts for row in verdict.rows],
        "new": [
            {
                "job": verdict.job,
                "graphs": [{"kind": g.kind, "key": g.key, "name": str(g)} for g in reason.graphs],
                "eager": list(reason.eager),
                "cause": reason.text,
                "advice": reason.advice,
                "rules": list(reason.rules),
                "site": dict(reason.site.plain()) if reason.site else None,
                "what": counts(reason),
            }
            for verdict in verdicts
            for reason in verdict.reasons
        ],
        "unused": [
            {
                "job": verdict.job,
                "graphs": [{"kind": g.kind, "key": g.key, "name": str(g)} for g in verdict.difference.gone],
                "eager": list(verdict.difference.gone_eager),
            }
            for verdict in verdicts
            if verdict.difference and not verdict.is_partial
        ],
        "findings": [plain(finding) for verdict in verdicts for finding in verdict.findings],
        "problems": [plain_problem(problem) for verdict in verdicts for problem in verdict.problems],
    }


def _plain(row: Row) -> dict[str, JSON]:
    return {
        "job": row.job,
        "name": row.name,
        "limit": row.limit,
        "now": row.now,
        "before": row.before,
        "status": row.status or "ok",
        "level": row.level,
        "note": row.note,
    }
