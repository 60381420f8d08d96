"""Turns a run into the report that the command returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shapeguard.core.errors import Exit
from shapeguard.core.finding import Finding, Severity, is_applicable
from shapeguard.core.links import rule_url
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.lint.clean import nothing_found
from shapeguard.lint.engine import LintRun
from shapeguard.lint.notices import UNREADABLE, catalogue

if TYPE_CHECKING:
    from shapeguard.lint.baseline import Known


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of a run is shown, and which exit code it gives."""

    baseline: Path | None = None
    write_baseline: Path | None = None
    is_fixing: bool = False
    is_diff: bool = False
    has_statistics: bool = False
    has_timing: bool = False
    is_exit_zero: bool = False
    is_exit_non_zero_on_fix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sorted:
    """The findings of a run, and what the baseline says of them."""

    open: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    num_known: int = 0
    stale: tuple[Known, ...] = ()


def lint_report(run: LintRun, view: View) -> Report:
    """Give the report of a run; a baseline that is to be written is written here."""
    findings = _identified(run.findings) if run.findings else ()
    run = replace(run, problems=tuple(replace(problem, code=UNREADABLE) for problem in run.problems))
    if view.write_baseline is not None:
        return _baseline_written(run, findings, view.write_baseline)
    kinds = _sort(run, findings, view.baseline)
    report = Report(
        tool="lint",
        sections=tuple(_sections(run, kinds, view)),
        findings=(*kinds.open, *kinds.suppressed),
        problems=run.problems,
        totals=_totals(run, kinds),
        rules=tuple(catalogue().values()),
        summary=tuple(_summary(run, kinds, view)),
        notes=tuple(_notes(run, kinds, view)),
        exit_code=_exit_code(run, kinds.open, view),
    )
    if view.is_diff:
        return replace(report, findings=(), sections=_verbatim(run.diff), summary=())
    if view.has_statistics:
        return replace(report, findings=(), document=_statistics_document(kinds.open))
    return report


def _verbatim(text: str) -> tuple[Text, ...]:
    return (Text(text=text, is_verbatim=True),) if text else ()


def _identified(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Add the link to the rule and a fingerprint that survives a move; equal lines are told apart by their order."""
    import hashlib

    seen: Counter[tuple[str, str, str]] = Counter()
    result = []
    for finding in findings:
        text = finding.excerpt[0].strip() if finding.excerpt else ""
        same = (finding.code, finding.path, text)
        seen[same] += 1
        digest = hashlib.blake2b("\0".join((*same, str(seen[same]))).encode("utf-8", "replace"), digest_size=16)
        result.append(replace(finding, url=rule_url(finding.code), fingerprint=digest.hexdigest()))
    return tuple(result)


def _sort(run: LintRun, findings: Sequence[Finding], baseline: Path | None) -> _Sorted:
    shown = [finding for finding in findings if finding.suppressed is None]
    suppressed = tuple(finding for finding in findings if finding.suppressed is not None)
    if baseline is None:
        return _Sorted(open=tuple(shown), suppressed=suppressed)
    from shapeguard.lint.baseline import Baseline

    known = Baseline(baseline)
    left = tuple(finding for finding in shown if not known.takes(finding))
    checked = {source.path for source in run.sources} - {problem.path for problem in run.problems}
    return _Sorted(
        open=left,
        suppressed=suppressed,
        num_known=len(shown) - len(left),
        stale=tuple(known.stale(checked)),
    )


def _baseline_written(run: LintRun, findings: Sequence[Finding], file: Path) -> Report:
    from shapeguard.lint.baseline import write_baseline

    shown = [finding for finding in findings if finding.suppressed is None]
    write_baseline(file, shown)
    text = f"Wrote {_counted(len(shown), 'finding')} to {file.as_posix()}; pass it as `--baseline {file.as_posix()}`."
    code = Exit.CLEAN if run.num_checked or not run.problems else Exit.FAILED
    return Report(tool="lint", problems=run.problems, summary=(text,), exit_code=code)


def _totals(run: LintRun, kinds: _Sorted) -> dict[str, int]:
    severities = Counter(finding.severity for finding in kinds.open)
    safe = sum(is_applicable(finding, unsafe=False) for finding in kinds.open)
    either = sum(is_applicable(finding, unsafe=True) for finding in kinds.open)
    return {
        "files": len(run.sources) or run.num_checked,
        "findings": len(kinds.open),
        "errors": severities[Severity.ERROR],
        "warnings": severities[Severity.WARNING],
        "notes": severities[Severity.NOTE],
        "fixable_safe": safe,
        "fixable_unsafe": either - safe,
        "fixed": len(run.fixed),
        "suppressed": len(kinds.suppressed),
        "baseline": kinds.num_known,
        "baseline_stale": len(kinds.stale),
        "problems": len(run.problems),
    }


def _exit_code(run: LintRun, findings: Sequence[Finding], view: View) -> Exit:
    if run.problems and not run.num_checked:
        return Exit.FAILED
    if view.is_exit_zero:
        return Exit.CLEAN
    if view.is_diff:
        return Exit.FINDINGS if run.num_changed or run.problems else Exit.CLEAN
    matters = any(finding.severity is not Severity.NOTE for finding in findings)
    if matters or run.problems or (run.fixed and view.is_exit_non_zero_on_fix):
        return Exit.FINDINGS
    return Exit.CLEAN


def _sections(run: LintRun, kinds: _Sorted, view: View) -> Iterator[Table | Text]:
    if view.has_statistics and kinds.open:
        yield _statistics(kinds.open)
    if view.has_timing:
        yield _timing(run)


def _statistics(findings: Sequence[Finding]) -> Table:
    counts = Counter(finding.code for finding in findings)
    rows = []
    for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        num_fixable = sum(is_applicable(f, unsafe=True) for f in findings if f.code == code)
        rows.append((f"{count:,}", code, f"{num_fixable:,}", catalogue()[code].summary))
    return Table(columns=("findings", "code", "fixable", "what"), rows=tuple(rows), right=frozenset({0, 2}))


def _statistics_document(findings: Sequence[Finding]) -> dict[str, JSON]:
    counts = Counter(finding.code for finding in findings)
    entries = catalogue()
    rows: list[JSON] = [
        {
            "code": code,
            "name": entries[code].name,
            "count": count,
            "fixable": sum(is_applicable(f, unsafe=True) for f in findings if f.code == code),
        }
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return {"schema": 1, "statistics": rows}


def _timing(run: LintRun) -> Table:
    stages = ("walk", "words", "suppressions", "ast", "tree", "wall")
    rows = [(stage, f"{run.timing.get(stage, 0.0):.3f}") for stage in stages]
    rows += [(path, f"{seconds:.3f}") for path, seconds in run.slowest if seconds > 0]
    note = f"{_counted(run.cache_hits, 'file')} of {len(run.sources):,} from the result cache; seconds of all processes"
    return Table(title="Time", columns=("stage or file", "s"), rows=tuple(rows), right=frozenset({1}), note=note)


def _summary(run: LintRun, kinds: _Sorted, view: View) -> Iterator[str]:
    if run.fixed and not view.is_diff:
        yield f"Fixed {_counted(len(run.fixed), 'finding')} in {_counted(run.num_changed, 'file')}."
    if kinds.open:
        where = len({finding.path for finding in kinds.open})
        yield f"Found {_counted(len(kinds.open), 'finding')} in {_counted(where, 'file')}{_aside(kinds)}."
        yield from _fix_hints(kinds.open, view)
    elif run.num_checked:
        checked = len(run.sources) or run.num_checked
        yield nothing_found(checked - len(run.problems), _aside(kinds))


def _aside(kinds: _Sorted) -> str:
    parts = []
    if kinds.suppressed:
        parts.append(f"{len(kinds.suppressed):,} suppressed")
    if kinds.num_known:
        parts.append(f"{kinds.num_known:,} in the baseline")
    return f" ({', '.join(parts)})" if parts else ""


def _fix_hints(findings: Sequence[Finding], view: View) -> Iterator[str]:
    safe = sum(is_applicable(finding, unsafe=False) for finding in findings)
    unsafe = sum(is_applicable(finding, unsafe=True) for finding in findings) - safe
    needy = [f.fix for f in findings if f.fix is not None and f.fix.needs]
    if safe and not view.is_fixing:
        yield f"{safe:,} can be fixed with `--fix`."
    if unsafe:
        yield f"{unsafe:,} can be fixed with `--fix --unsafe-fixes`, which may change what the program does."
    if needy:
        yield f"{len(needy):,} could be fixed with {needy[0].needs}."


def _notes(run: LintRun, kinds: _Sorted, view: View) -> Iterator[str]:
    if run.warning:
        yield f"warning: {run.warning}"
    if not run.sources and not run.problems and not run.num_checked:
        yield "warning: no Python files or notebooks found under the given paths"
    for known in kinds.stale:
        yield f"warning: baseline entry no longer found: {known.path}: {known.code} {known.text}"
    if kinds.stale:
        yield "hint: renew the baseline with `--write-baseline`"
    if view.is_diff and run.fixed:
        yield f"Would fix {_counted(len(run.fixed), 'finding')} in {_counted(run.num_changed, 'file')}."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
