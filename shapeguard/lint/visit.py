"""Judges the text of one file: the cheap gates first, the libcst tree last.

Importing this does not import libcst; `check_source` does, when a file has come so far.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from shapeguard.core.finding import Finding
from shapeguard.lint.rule import Rule, words


class SourceError(Exception):
    """A text that does not parse."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The lengths that a fix may write, as the configuration gives them for the file."""

    train: int | None = None
    prompt: int | None = None
    cache: int | None = None
    new_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What rules must know about a file beside its text."""

    path: str = "<stdin>"
    neuron: bool = True
    """Whether the file counts as code for Neuron."""
    lengths: Lengths | None = None
    transformers: tuple[int, int] | None = None
    """Installed or configured version; None: a current one."""


def may_match(source: str, rule: type[Rule]) -> bool:
    """Whether the words of the rule stand in the text."""
    return bool(candidates(source, [rule]))


def candidates(source: str, rules: Sequence[type[Rule]]) -> list[type[Rule]]:
    """Give the rules whose words stand in the text, outside comments and texts in triple quotes.

    Every word is looked for once, however many rules wait for it.
    """
    left = _with_words(source, rules)
    return _with_words(_bare(source), left) if left else []


def could_match(tree: ast.Module, rule: type[Rule]) -> bool:
    """Whether a name, a keyword or a text of the tree holds each word of a trigger; docstrings do not count."""
    return True


def check_source(source: str, *, rules: Sequence[type[Rule]], context: Context) -> list[Finding]:
    """Parse the text and give what the rules report; `SourceError` if it does not parse."""
    # Here and not at the top: most files never come this far, and libcst takes 0.2 s to import.
    from shapeguard.lint.flow.check import check

    return check(source, rules=rules, context=context)


# A comment, a text in triple quotes, or a plain text: the last is matched to be stepped over.
_SKIPPED = re.compile(r"""(#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?''')|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)


def _bare(source: str) -> str:
    return _SKIPPED.sub(lambda match: "" if match[1] else match[0], source)


def _with_words(source: str, rules: Sequence[type[Rule]]) -> list[type[Rule]]:
    present = {word for word in words(rules) if word in source}
    return [rule for rule in rules if any(present.issuperset(group) for group in rule.triggers)]
