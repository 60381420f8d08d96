"""Judges one text: words, then Python's own tree, then libcst; and the comments that suppress.

What most files do not need is imported where it is used: the start of a run over one clean file is a tenth of a second.
"""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Sequence

from shapeguard.core.finding import Finding
from shapeguard.lint.notices import UNREADABLE, UNUSED
from shapeguard.lint.rule import Rule, load_rules
from shapeguard.lint.task import Task
from shapeguard.lint.visit import Context, SourceError, candidates, check_source, could_match

NESTED = "nested too deeply to be checked"


class Checker:
    """Judges one text, as often as a fix asks, always as the same file."""

    def __init__(self, task: Task, timing: dict[str, float]) -> None:
        self.task = task
        self.timing = timing
        self.neuron = task.neuron
        rules = load_rules()
        self.rules = [rule for code, rule in rules.items() if code in task.codes]
        self.known = {*rules, UNUSED, UNREADABLE}

    def is_plainly_clean(self, text: str) -> bool:
        """Whether no rule's words and no suppression stand in the text, and Python accepts it."""
        if "shapeguard" in text or "SG" in text or candidates(text, self.rules):
            return False
        return not self.task.must_parse or parse(text)[0] is not None

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
        return self._tree(text, rules, context, tree or wrong)

    def _parse(self, text: str) -> None:
        with self._timed("ast"):
            _, wrong = parse(text)
        if wrong is not None:
            self._tree(text, (), Context(path=self.task.path), wrong)

    def _tree(
        self, text: str, rules: Sequence[type[Rule]], context: Context, parsed: ast.Module | SyntaxError | None
    ) -> list[Finding]:
        with self._timed("tree"):
            try:
                tree = parsed if isinstance(parsed, ast.Module) else None
                return check_source(text, rules=rules, context=context, tree=tree)
            except SourceError:
                if not isinstance(parsed, SyntaxError):
                    raise
                # Both parsers refuse it; Python's words are the ones people know.
                raise SourceError(f"does not parse: {parsed.msg}", parsed.lineno or 0) from None

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
            raise SourceError(NESTED, error.lineno or 0) from None
        return None, error
    except (ValueError, RecursionError, MemoryError):
        raise SourceError(NESTED) from None
