"""Runs the linter: collects files, asks the result cache, has the rest judged, and writes what fixes changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shapeguard.core.files import replace_file
from shapeguard.core.finding import Finding, Problem, is_applicable
from shapeguard.lint.check import check_file
from shapeguard.lint.clean import FEW_BYTES, plainly_clean
from shapeguard.lint.files import Source, Walk
from shapeguard.lint.scope import Scope, ScopeFor
from shapeguard.lint.task import FixMode, Task, Verdict

if TYPE_CHECKING:
    from shapeguard.lint.result_cache import ResultCache

PARSE_ALL_BYTES = 4_000_000
"""Up to this much code in all, files without a word for any rule are parsed too, to say that they do not parse."""
MAX_FILE_BYTES = 256 * 1024 * 1024
_ONE_PROCESS_BYTES = 15_000
"""Less than this is judged as soon by one process as by two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """How a run goes about its files."""

    fix: FixMode = "off"
    is_diff: bool = False
    """Show what the fixes would change, and write nothing."""
    jobs: int = 1
    cache_folder: Path | None = None
    """None: no result cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRun:
    """What came out of a run, before a baseline or a format."""

    sources: tuple[Source, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Suppressed ones too."""
    problems: tuple[Problem, ...] = ()
    num_checked: int = 0
    """Files that could be judged."""
    fixed: tuple[str, ...] = ()
    """Codes of the findings that were mended."""
    num_changed: int = 0
    diff: str = ""
    new_text: str = ""
    """The mended text of standard input."""
    cache_hits: int = 0
    timing: dict[str, float] = field(default_factory=dict)
    slowest: tuple[tuple[str, float], ...] = ()
    warning: str = ""


def collect(paths: Sequence[Path], scope_for: ScopeFor) -> tuple[list[Source], list[Problem]]:
    """Give the files that a run would check, and what could not be looked at."""
    walk = Walk(scope_for)
    return walk.collect(paths), walk.problems


def lint_paths(paths: Sequence[Path], *, scope_for: ScopeFor, options: LintOptions) -> LintRun:
    """Check the files of the paths; what fixes change is written, unless only a diff is wanted."""
    start = time.perf_counter()
    sources, problems = collect(paths, scope_for)
    walked = time.perf_counter()
    tasks = _tasks(sources, options)
    cache = _open_cache(options.cache_folder)
    verdicts = _verdicts(sources, tasks, cache, options)
    if cache is not None:
        cache.save()
    run = _gather(sources, tasks, verdicts, options)
    timing = {"walk": walked - start, **run.timing, "wall": time.perf_counter() - start}
    return replace(
        run,
        problems=(*_silenced(problems, scope_for), *run.problems),
        timing=timing,
        cache_hits=cache.hits if cache else 0,
        warning=cache.warning if cache else "",
    )


def _open_cache(folder: Path | None) -> ResultCache | None:
    if folder is None:
        return None
    # Here, since `--no-cache` needs no hashes: 10 ms of every start.
    from shapeguard.lint.result_cache import ResultCache

    return ResultCache(folder)


def lint_text(data: bytes, *, path: str, scope: Scope, options: LintOptions) -> LintRun:
    """Check one text that stands in no file."""
    file = Path(path)
    task = scope.task(file, path=path, is_notebook=file.suffix.lower() == ".ipynb", fix=options.fix)
    verdict = check_file(data, replace(task, must_parse=True))
    new_data = data if verdict.new_data is None else verdict.new_data
    return LintRun(
        findings=verdict.findings,
        problems=verdict.problems if scope.reports_unreadable else (),
        num_checked=0 if verdict.problems else 1,
        fixed=verdict.fixed,
        num_changed=int(new_data != data),
        diff=_diff(path, data, new_data) if options.is_diff else "",
        new_text=new_data.decode("utf-8", "replace"),
        timing=verdict.timing,
    )


def _tasks(sources: Sequence[Source], options: LintOptions) -> list[Task]:
    parse_all = sum(source.size for source in sources if not source.is_notebook) <= PARSE_ALL_BYTES
    return [source.task(fix=options.fix, must_parse=source.is_named or parse_all) for source in sources]


def _verdicts(
    sources: Sequence[Source], tasks: Sequence[Task], cache: ResultCache | None, options: LintOptions
) -> list[Verdict]:
    """Give one verdict a file, in order: remembered ones, and the rest from the workers."""
    verdicts: dict[int, Verdict] = {}
    keys: dict[int, str] = {}
    for index, (source, task) in enumerate(zip(sources, tasks, strict=True)):
        early = _early(source, task)
        if early is None and cache is not None:
            early, keys[index] = _remembered(source, task, cache, options)
        if early is not None:
            verdicts[index] = early
    missing = [index for index in range(len(sources)) if index not in verdicts]
    if sum(sources[index].size for index in missing) < FEW_BYTES:
        # A few clean files are judged sooner than a child has started.
        verdicts |= {index: Verdict() for index in missing if plainly_clean(sources[index], tasks[index])}
    # The largest first: one that is met last would keep a single process busy while the others wait.
    missing = sorted(set(missing) - set(verdicts), key=lambda i: (-sources[i].size, i))
    for index, verdict in _from_workers(missing, sources, tasks, jobs=options.jobs):
        verdicts[index] = verdict
        if cache is not None and keys.get(index) and verdict.new_data is None and not verdict.problems:
            cache.put(keys[index], verdict)
    return [verdicts[index] for index in range(len(sources))]


def _from_workers(
    missing: Sequence[int], sources: Sequence[Source], tasks: Sequence[Task], *, jobs: int
) -> Iterator[tuple[int, Verdict]]:
    if not missing:
        return
    from shapeguard.lint.workers import check_files, load_parser

    size = sum(sources[index].size for index in missing)
    if size < _ONE_PROCESS_BYTES:
        jobs = 1
    elif size < FEW_BYTES:
        # Words stand in all of these, so that each child would load it.
        load_parser()
    items = [(sources[index].file, tasks[index]) for index in missing]
    for place, verdict in check_files(items, jobs=jobs):
        yield missing[place], verdict


def _early(source: Source, task: Task) -> Verdict | None:
    if source.size <= MAX_FILE_BYTES:
        return None
    message = f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MB, so it was not checked"
    return Verdict(problems=(Problem(path=task.path, message=message),))


def _remembered(source: Source, task: Task, cache: ResultCache, options: LintOptions) -> tuple[Verdict | None, str]:
    try:
        data = source.file.read_bytes()
    except OSError:
        return None, ""
    key = cache.key(data, task)
    verdict = cache.get(key, task.path)
    if verdict is not None and options.fix != "off":
        # Only the rules themselves say what to write; from the cache comes at most that there is nothing to fix.
        unsafe = options.fix == "unsafe"
        if any(is_applicable(finding, unsafe=unsafe) for finding in verdict.findings):
            return None, key
    return verdict, key


def _gather(
    sources: Sequence[Source], tasks: Sequence[Task], verdicts: Sequence[Verdict], options: LintOptions
) -> LintRun:
    findings: list[Finding] = []
    problems: list[Problem] = []
    fixed: list[str] = []
    diffs: list[str] = []
    timing: dict[str, float] = {}
    num_changed = num_checked = 0
    for source, verdict in zip(sources, verdicts, strict=True):
        findings += verdict.findings
        if source.scope.reports_unreadable:
            problems += verdict.problems
        num_checked += not verdict.problems
        for stage, seconds in verdict.timing.items():
            timing[stage] = timing.get(stage, 0.0) + seconds
        if verdict.new_data is None:
            continue
        problem, diff = _write(source, verdict.new_data, options)
        if problem is not None:
            problems.append(problem)
            continue
        diffs.append(diff)
        fixed += verdict.fixed
        num_changed += 1
    slowest = sorted(
        ((task.path, sum(verdict.timing.values())) for task, verdict in zip(tasks, verdicts, strict=True)),
        key=lambda row: (-row[1], row[0]),
    )
    return LintRun(
        sources=tuple(sources),
        findings=tuple(findings),
        problems=tuple(problems),
        num_checked=num_checked,
        fixed=tuple(fixed),
        num_changed=num_changed,
        diff="".join(diffs),
        timing=timing,
        slowest=tuple(slowest[:5]),
    )


def _write(source: Source, data: bytes, options: LintOptions) -> tuple[Problem | None, str]:
    try:
        if options.is_diff:
            return None, _diff(source.path, source.file.read_bytes(), data)
        replace_file(source.file, data)
    except OSError as error:
        return Problem(path=source.path, message=f"could not be written: {error.strerror or error}"), ""
    return None, ""


def _diff(path: str, old: bytes, new: bytes) -> str:
    # Here, since only `--diff` needs it: 5 ms of every start.
    import difflib

    def lines(data: bytes) -> list[str]:
        return data.decode("utf-8", "replace").splitlines(keepends=True)

    pieces = difflib.unified_diff(lines(old), lines(new), fromfile=path, tofile=path)
    return "".join(piece if piece.endswith("\n") else piece + "\n\\ No newline at end of file\n" for piece in pieces)


def _silenced(problems: Sequence[Problem], scope_for: ScopeFor) -> list[Problem]:
    return list(problems) if scope_for(Path(os.curdir)).reports_unreadable else []
