"""Judges one file: from its bytes to findings, problems and, if asked, the mended bytes. Touches no disk.

What most files do not need (notebooks, suppressions, fixes, tokens) is imported where it is used: the start of a run
over one clean file is a tenth of a second.
"""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from shapeguard.core.finding import Edit, Finding, Problem, is_applicable
from shapeguard.lint.notices import UNREADABLE, UNUSED
from shapeguard.lint.rule import Rule, load_rules
from shapeguard.lint.text import Decoded, UnreadableError, decode
from shapeguard.lint.visit import Context, Lengths, SourceError, candidates, check_source, could_match

if TYPE_CHECKING:
    from shapeguard.lint.notebooks import Notebook

MAX_SOURCE_BYTES = 8 * 1024 * 1024
"""A Python text larger than this is data; parsing it would take gigabytes."""
_EXCERPT_LINES = 5
_EXCERPT_WIDTH = 2000
_NESTED = "nested too deeply to be checked"

FixMode = Literal["off", "safe", "unsafe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One file and how it is to be judged."""

    path: str
    """As it is shown."""
    is_notebook: bool = False
    codes: frozenset[str] = frozenset()
    """The codes that are checked in this file."""
    neuron: bool | None = True
    """Whether the file is for Neuron; None: the file itself shows it."""
    lengths: Lengths | None = None
    transformers: tuple[int, int] | None = None
    fix: FixMode = "off"
    must_parse: bool = False
    """Parse the file even if no rule can speak in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found in one file."""

    findings: tuple[Finding, ...] = ()
    """Suppressed ones too."""
    problems: tuple[Problem, ...] = ()
    fixed: tuple[str, ...] = ()
    """Codes of the findings that were mended."""
    new_data: bytes | None = None
    """The mended file, where a fix changed it."""
    timing: dict[str, float] = field(default_factory=dict)
    """Seconds by stage."""


def check_file(data: bytes, task: Task) -> Verdict:
    """Judge the bytes of one file; whatever they are, nothing is raised."""
    timing: dict[str, float] = {}
    try:
        decoded = decode(data)
        checker = _Checker(task, timing)
        verdict = _notebook(decoded, checker) if task.is_notebook else _python(decoded, checker)
    except (UnreadableError, SourceError) as error:
        return Verdict(problems=(Problem(path=task.path, line=error.line, message=error.message),), timing=timing)
    except (RecursionError, MemoryError):
        return Verdict(problems=(Problem(path=task.path, message=_NESTED),), timing=timing)
    except Exception as error:
        # A mistake of ours in one file of many: the others are still judged, and the place is named.
        return Verdict(problems=(Problem(path=task.path, message=_bug(error)),), timing=timing)
    return replace(verdict, timing=timing)


def _bug(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" at {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace else ""
    return f"made the linter fail: {type(error).__name__}: {error}{where}; please report this"


def _python(decoded: Decoded, checker: _Checker) -> Verdict:
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


def _notebook(decoded: Decoded, checker: _Checker) -> Verdict:
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


def _first_round(book: Notebook, checker: _Checker) -> tuple[list[str], list[Edit]]:
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


class _Checker:
    """Judges one text, as often as a fix asks, always as the same file."""

    def __init__(self, task: Task, timing: dict[str, float]) -> None:
        self.task = task
        self.timing = timing
        self.neuron = task.neuron
        rules = load_rules()
        self.rules = [rule for code, rule in rules.items() if code in task.codes]
        self.known = {*rules, UNUSED, UNREADABLE}

    def check(self, text: str) -> list[Finding]:
        """Give the findings of the text in its order, suppressed ones marked."""
        with self._timed("words"):
            chosen = candidates(text, self.rules)
            rules = self._for_neuron(chosen, text)
        found = self._ask(text, rules) if rules else []
        if not rules and self.task.must_parse:
            self._parse(text)
        findings = self._suppressed(text, found)
        return sorted(findings, key=lambda f: (f.span.start, f.span.end, f.code, f.message))

    def _for_neuron(self, rules: Sequence[type[Rule]], text: str) -> list[type[Rule]]:
        if not any(rule.neuron_only for rule in rules):
            return list(rules)
        is_neuron = self._is_neuron(text)
        return [rule for rule in rules if is_neuron or not rule.neuron_only]

    def _is_neuron(self, text: str) -> bool:
        if self.neuron is None:
            from shapeguard.lint.evidence import shows_neuron

            # Once a file: a fix that writes "neuron" must not wake further rules in the next round.
            self.neuron = shows_neuron(text)
        return self.neuron

    def _ask(self, text: str, rules: list[type[Rule]]) -> list[Finding]:
        with self._timed("ast"):
            tree, wrong = parse(text)
            rules = [rule for rule in rules if tree is None or could_match(tree, rule)]
        if not rules:
            return []
        context = Context(
            path=self.task.path,
            neuron=self._is_neuron(text),
            lengths=self.task.lengths,
            transformers=self.task.transformers,
        )
        return self._tree(text, rules, context, wrong)

    def _parse(self, text: str) -> None:
        with self._timed("ast"):
            _, wrong = parse(text)
        if wrong is not None:
            self._tree(text, (), Context(path=self.task.path), wrong)

    def _tree(
        self, text: str, rules: Sequence[type[Rule]], context: Context, wrong: SyntaxError | None
    ) -> list[Finding]:
        with self._timed("tree"):
            try:
                return check_source(text, rules=rules, context=context)
            except SourceError:
                if wrong is None:
                    raise
                # Both parsers refuse it; Python's words are the ones people know.
                raise SourceError(f"does not parse: {wrong.msg}", wrong.lineno or 0) from None

    def _suppressed(self, text: str, found: list[Finding]) -> list[Finding]:
        if not found and "shapeguard" not in text and "SG" not in text:
            return found
        from shapeguard.lint.suppress import mentions_suppression, read_suppressions, suppress, unused

        if not mentions_suppression(text) and not (found and "noqa" in text.lower()):
            return found
        with self._timed("suppressions"):
            suppressions = read_suppressions(text)
            findings = suppress(found, suppressions)
            if UNUSED in self.task.codes:
                idle = list(
                    unused(text, suppressions, judged=self._judged(text), known=self.known, path=self.task.path)
                )
                findings += suppress(idle, suppressions)
        return findings

    def _judged(self, text: str) -> set[str]:
        """The codes whose silence says something: rules that were asked about this file."""
        return {rule.code for rule in self.rules if not rule.neuron_only or self._is_neuron(text)}

    def _timed(self, stage: str) -> _Stage:
        return _Stage(self.timing, stage)


class _Stage:
    """Adds the seconds of a block to a stage."""

    def __init__(self, timing: dict[str, float], stage: str) -> None:
        self.timing = timing
        self.stage = stage
        self.start = 0.0

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.timing[self.stage] = self.timing.get(self.stage, 0.0) + time.perf_counter() - self.start


def parse(text: str) -> tuple[ast.Module | None, SyntaxError | None]:
    """Give Python's own tree, or why there is none: newer syntax perhaps, so that libcst must decide."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text), None
    except SyntaxError as error:
        if "too many nested" in str(error) or "too many statically nested" in str(error):
            raise SourceError(_NESTED, error.lineno or 0) from None
        return None, error
    except (ValueError, RecursionError, MemoryError):
        raise SourceError(_NESTED) from None
