"""Judges one job: its run against the lock and the limits, as rows of a table and findings at the user's lines."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from shapeguard.checks.budget import Row, level, rows
from shapeguard.checks.job import Job
from shapeguard.checks.reasons import Reason, reasons
from shapeguard.checks.run import Ran
from shapeguard.core.finding import Finding, Problem, Severity, Span
from shapeguard.lock.change import Difference, difference
from shapeguard.lock.values import Lock, eager_text

NEW, UNUSED, OVER, STALE, FALLBACK = "new-graph", "unused-graph", "over-budget", "stale-lock", "new-fallback"
_SEVERITY = {"error": Severity.ERROR, "warn": Severity.WARNING}
_MOST_NAMED = 3
_LONGEST = 100
"""A signature of many inputs is cut to so many characters where several are named."""


def first_line(where: str) -> int:
    """Stands for a configuration that was not read from a file."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the files of a check lie."""

    lock: Path
    config: str = ""
    """The configuration as errors call it."""
    line: Callable[[str], int] = first_line
    """Gives the line of a dotted key in the configuration."""

    def of(self, where: str) -> tuple[str, int]:
        """Give the file and line of a key of the configuration; the lock where there is no configuration."""
        return (self.config, self.line(where)) if self.config else (shown(self.lock), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a job came to."""

    job: str
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...] = ()
    difference: Difference | None = None
    reasons: tuple[Reason, ...] = ()
    is_partial: bool = False

    @property
    def has_errors(self) -> bool:
        """Whether something fails the check."""
        return bool(self.problems) or any(finding.severity == Severity.ERROR for finding in self.findings)


def judge(ran: Ran, lock: Lock, place: Place, *, today: date) -> Verdict:
    """Judge a job's run."""
    job = ran.job
    now = ran.observed.locked(job.locked)
    found = difference(lock, now, job.name)
    why = reasons(ran.observed, lock, found.added, found.added_eager)
    counted = rows(job.name, job.settings, now, locked=lock, today=today)
    findings = [*_new(job, why, place), *_fallbacks(ran, lock, place)]
    if not ran.why_partial:
        findings += _unused(job, found, place)
    findings += _over(job, counted, why, place)
    problems: tuple[Problem, ...] = ()
    if ran.why_partial:
        said = f"job {job.name}: {ran.why_partial}; what the lock has besides is not judged unused"
        problems = (Problem(path=os.path.relpath(ran.folder), message=said),)
    return Verdict(
        job=job.name,
        rows=tuple(counted),
        findings=tuple(findings),
        problems=problems,
        difference=replace(found, gone=(), gone_eager=()) if ran.why_partial else found,
        reasons=tuple(why),
        is_partial=bool(ran.why_partial),
    )


def judge_alone(job: Job, lock: Lock, place: Place, *, today: date) -> Verdict:
    """Judge what the lock says of a job, without running it."""
    findings = [*stale(job, lock, place)]
    counted = rows(job.name, job.settings, lock, locked=lock, today=today) if job.name in lock.jobs else []
    findings += _over(job, counted, (), place)
    return Verdict(job=job.name, rows=tuple(counted), findings=tuple(findings))


def stale(job: Job, lock: Lock, place: Place) -> Iterator[Finding]:
    """Say where a job's settings are not those that it was locked with."""
    known = lock.jobs.get(job.name)
    run = f"run `{relock(job.name)}`"
    if known is None:
        yield finding(STALE, f"job {job.name} is not in the lock: {run}", path=shown(place.lock))
    elif known.settings != job.locked.settings:
        said = f"job {job.name}: its settings are not those it was locked with: {run}"
        path, line = place.of(f'jobs."{job.name}"')
        yield finding(STALE, said, path=path, line=line)


def _new(job: Job, why: Sequence[Reason], place: Place) -> Iterator[Finding]:
    wanted = level(job.settings.budget, "new")
    if wanted == "off":
        return
    for reason in why:
        message = f"{job.name}: {counts(reason)} not in the lock: {because(reason)}"
        path, line = _where(job, reason, place)
        yield finding(NEW, message, path=path, line=line, severity=_SEVERITY[wanted])


def _where(job: Job, reason: Reason, place: Place) -> tuple[str, int]:
    if reason.site is None:
        return shown(place.lock), 1
    return shown(job.root / reason.site.file), max(reason.site.line, 1)


def counts(reason: Reason) -> str:
    """Say how much a reason brought: `2 graphs (forward, backward of Net) and 9 eager signatures`."""
    parts = []
    if reason.graphs:
        kinds = ", ".join(dict.fromkeys(graph.kind for graph in reason.graphs))
        models = ", ".join(dict.fromkeys(graph.model for graph in reason.graphs if graph.model))
        of = f" of {models}" if models else ""
        parts.append(f"{_counted(len(reason.graphs), 'graph')} ({kinds}{of})")
    if reason.eager:
        names = list(dict.fromkeys(eager_text(line).partition("(")[0] for line in reason.eager))
        more = f", {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED])
        parts.append(f"{_counted(len(reason.eager), 'eager signature')} ({listed}{more})")
    return " and ".join(parts)


def because(reason: Reason) -> str:
    """Say what changed, where, and what to do."""
    where = f" at {reason.site}" if reason.site else ""
    rules = f" [{', '.join(reason.rules)}]" if reason.rules else ""
    advice = f"; {reason.advice}{rules}" if reason.advice else ""
    return f"{reason.text}{where}{advice}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _unused(job: Job, found: Difference, place: Place) -> Iterator[Finding]:
    wanted = level(job.settings.budget, "unused")
    gone = [*(str(graph) for graph in found.gone), *(f"eager {eager_text(line)}" for line in found.gone_eager)]
    if wanted == "off" or not gone:
        return
    keys = [*(graph.key for graph in found.gone), *(line.rpartition(" ")[2] for line in found.gone_eager)]
    more = f" and {len(gone) - _MOST_NAMED} more" if len(gone) > _MOST_NAMED else ""
    what = []
    if found.gone:
        what.append(_counted(len(found.gone), "graph"))
    if found.gone_eager:
        what.append(_counted(len(found.gone_eager), "eager signature"))
    message = (
        f"{job.name}: {' and '.join(what)} of the lock did not come any more: "
        f"{', '.join(map(_short, gone[:_MOST_NAMED]))}{more}; run `{relock(job.name)}`"
    )
    line = line_of(place.lock, keys[0])
    yield finding(UNUSED, message, path=shown(place.lock), line=line, severity=_SEVERITY[wanted])


def _over(job: Job, counted: Sequence[Row], why: Sequence[Reason], place: Place) -> Iterator[Finding]:
    for row in counted:
        if not row.is_over or row.level == "off":
            continue
        cause = _cause_of(row, why)
        path, line = _where(job, cause, place) if cause else place.of(_key(job, row))
        note = f"; {row.note}" if row.note else ""
        told = f": {because(cause)}" if cause else _named(row)
        message = f"{job.name} {row.name}: {number(row.now)}, the limit is {number(row.limit)}{note}{told}"
        yield finding(OVER, message, path=path, line=line, severity=_SEVERITY[row.level])


def _cause_of(row: Row, why: Sequence[Reason]) -> Reason | None:
    """Give the reason for what a row counts beside the lock."""
    counted = set(row.counted)
    for reason in why:
        texts = map(eager_text, reason.eager) if row.name == "eager" else map(str, reason.graphs)
        is_meant = row.name == "compile-minutes" and reason.graphs
        if is_meant or not counted.isdisjoint(texts):
            return reason
    return None


def _named(row: Row) -> str:
    if not row.counted:
        return ""
    more = f" and {len(row.counted) - 5} more" if len(row.counted) > 5 else ""
    return f": {'; '.join(map(_short, row.counted[:5]))}{more}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _key(job: Job, row: Row) -> str:
    """Give the key of a row's limit in the configuration."""
    part = next(
        (n for n, part in enumerate(job.settings.budget.match, 1) if row.name in (part.name, f"{part.name} shapes")), 0
    )
    return f'jobs."{job.name}".budget.' + (f"match[{part}]" if part else row.name)


def relock(name: str) -> str:
    """Give the command that locks a job anew, as a shell takes it."""
    return f"shapeguard lock {shlex.quote(name)}"


def number(value: float | None) -> str:
    """Give a count as a whole number, minutes with one digit; `-` where there is none."""
    if value is None:
        return "-"
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _fallbacks(ran: Ran, lock: Lock, place: Place) -> Iterator[Finding]:
    known = lock.jobs.get(ran.job.name)
    for op, site in sorted(ran.observed.fallbacks.items(), key=lambda item: item[0]):
        if known is None or op in known.fallbacks:
            continue
        here = place.of(f'jobs."{ran.job.name}"')
        path, line = (shown(ran.job.root / site.file), site.line) if site else here
        message = f"{ran.job.name}: `{op}` runs on the host for want of a kernel; the lock does not have it"
        yield finding(FALLBACK, message, path=path, line=line, severity=Severity.WARNING)


def finding(code: str, message: str, *, path: str, line: int = 1, severity: Severity = Severity.ERROR) -> Finding:
    """Give a finding at a line, with the line's text where the file is here."""
    text = _line(path, line)
    column = len(text) - len(text.lstrip()) + 1
    span = Span(start=0, end=0, line=line, column=column, end_line=line, end_column=max(len(text.rstrip()), column) + 1)
    digest = hashlib.sha256(f"{code}\n{path}\n{text.strip()}\n{message.partition(':')[0]}".encode()).hexdigest()[:16]
    return Finding(
        code=code,
        path=path,
        span=span,
        message=message,
        severity=severity,
        excerpt=(text,) if text else (),
        fingerprint=digest,
        url=f"urn:shapeguard:check:{code}",
    )


def _line(path: str, line: int) -> str:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as stream:
            return next((text.rstrip("\n") for number, text in enumerate(stream, 1) if number == line), "")
    except OSError:
        return ""


def line_of(path: Path, text: str) -> int:
    """Give the line of a file that holds a text; 1 where none does."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return next((number for number, line in enumerate(stream, 1) if text in line), 1)
    except OSError:
        return 1


def shown(path: Path) -> str:
    """Give a path from the working directory where it lies below it, with forward slashes."""
    inside = os.path.relpath(path)
    return path.as_posix() if inside.startswith("..") else Path(inside).as_posix()
