"""Judges one file: from its bytes to findings, problems and, if asked, the mended bytes. Touches no disk.

What most files do not need (notebooks, suppressions, fixes, tokens) is imported where it is used: the start of a run
over one clean file is a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from shapeguard.core.finding import Edit, Finding, Problem, is_applicable
from shapeguard.lint.checker import NESTED, Checker
from shapeguard.lint.task import Task, Verdict
from shapeguard.lint.text import Decoded, UnreadableError, decode
from shapeguard.lint.visit import SourceError

if TYPE_CHECKING:
    from shapeguard.lint.notebooks import Notebook

MAX_SOURCE_BYTES = 8 * 1024 * 1024
"""A Python text larger than this is data; parsing it would take gigabytes."""
_EXCERPT_LINES = 5
_EXCERPT_WIDTH = 2000


def check_file(data: bytes, task: Task) -> Verdict:
    """Judge the bytes of one file; whatever they are, nothing is raised."""
    timing: dict[str, float] = {}
    try:
        decoded = decode(data)
        checker = Checker(task, timing)
        verdict = _notebook(decoded, checker) if task.is_notebook else _python(decoded, checker)
    except (UnreadableError, SourceError) as error:
        return Verdict(problems=(Problem(path=task.path, line=error.line, message=error.message),), timing=timing)
    except (RecursionError, MemoryError):
        return Verdict(problems=(Problem(path=task.path, message=NESTED),), timing=timing)
    except Exception as error:
        # A mistake of ours in one file of many: the others are still judged, and the place is named.
        return Verdict(problems=(Problem(path=task.path, message=_bug(error)),), timing=timing)
    return replace(verdict, timing=timing)


def _bug(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {PurePath(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else ""
    return f"made the linter fail: {type(error).__name__}: {error}{where}; please report this"


def _python(decoded: Decoded, checker: Checker) -> Verdict:
    _reject_large(decoded.text)
    task = checker.task
    if task.fix == "off":
        findings = checker.check(decoded.text)
        return Verdict(findings=_shown(decoded, findings))
    from shapeguard.lint.fix import fix_text

    fixed = fix_text(decoded.text, checker.check, unsafe=task.fix == "unsafe")
    mended = replace(decoded, text=fixed.text)
    return Verdict(
        findings=_shown(mended, fixed.left),
        fixed=tuple(finding.code for finding in fixed.applied),
        new_data=decoded.encode(fixed.text) if fixed.applied else None,
    )


def _shown(decoded: Decoded, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    if not findings:
        return ()
    from shapeguard.lint.lexer import split_lines

    lines = split_lines(decoded.text)
    return tuple(decoded.in_file(_complete(finding, lines, decoded.text)) for finding in findings)


def _notebook(decoded: Decoded, checker: Checker) -> Verdict:
    """Judge a notebook; its fixes are written back into the cells round by round."""
    from shapeguard.lint.fix import MAX_ROUNDS
    from shapeguard.lint.notebooks import read_notebook

    book = read_notebook(decoded.text)
    if book is None:
        return Verdict()
    _reject_large(book.text)
    findings = checker.check(book.text)
    problems = tuple(book.problems(checker.task.path))
    if checker.task.fix == "off":
        return Verdict(findings=_in_cells(book, findings), problems=problems)
    fixed: list[str] = []
    raw = decoded.text
    for _ in range(MAX_ROUNDS):
        round_fixed, edits = _first_round(book, checker)
        new_raw = book.with_edits(edits) if edits else raw
        new_book = read_notebook(new_raw)
        if not round_fixed or new_raw == raw or new_book is None or len(new_book.broken) > len(book.broken):
            break
        raw, book = new_raw, new_book
        fixed += round_fixed
    left = checker.check(book.text)
    return Verdict(
        findings=_in_cells(book, left),
        problems=problems,
        fixed=tuple(fixed),
        new_data=decoded.encode(raw) if fixed else None,
    )


def _first_round(book: Notebook, checker: Checker) -> tuple[list[str], list[Edit]]:
    from shapeguard.lint.fix import without_overlap

    wanted = [f for f in checker.check(book.text) if is_applicable(f, unsafe=checker.task.fix == "unsafe")]
    chosen = without_overlap(wanted)
    edits = [edit for finding in chosen if finding.fix for edit in finding.fix.edits]
    return [finding.code for finding in chosen], list(dict.fromkeys(edits))


def _in_cells(book: Notebook, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    from shapeguard.lint.lexer import split_lines

    lines = split_lines("".join(c.source if c.source.endswith("\n") else c.source + "\n" for c in book.cells))
    return tuple(book.in_cell(_complete(finding, lines, book.text)) for finding in findings)


def _complete(finding: Finding, lines: Sequence[str], text: str) -> Finding:
    """Add what a reporter needs, since it never sees the text: the lines, and where the edits stand."""
    first = finding.span.line - 1
    last = min(finding.span.end_line, first + _EXCERPT_LINES)
    excerpt = tuple(line[:_EXCERPT_WIDTH] for line in lines[first:last])
    fix = finding.fix
    if fix is not None and fix.edits:
        data = text.encode("utf-8")
        fix = replace(fix, edits=tuple(_placed(edit, data) for edit in fix.edits))
    return replace(finding, excerpt=excerpt, fix=fix)


def _placed(edit: Edit, data: bytes) -> Edit:
    line, column = _position(data, edit.start)
    end_line, end_column = _position(data, edit.end)
    return replace(edit, line=line, column=column, end_line=end_line, end_column=end_column)


def _position(data: bytes, offset: int) -> tuple[int, int]:
    from shapeguard.lint.lexer import split_lines

    lines = split_lines(data[:offset].decode("utf-8", "replace"))
    return len(lines), len(lines[-1]) + 1


def _reject_large(text: str) -> None:
    if len(text) > MAX_SOURCE_BYTES:
        raise UnreadableError(f"is larger than {MAX_SOURCE_BYTES // 1024 // 1024} MB of code, so it was not checked")
