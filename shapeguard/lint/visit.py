"""Judges the text of one file: the cheap gates first, the libcst tree last.

Importing this does not import libcst; `check_source` does, when a file has come so far.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from shapeguard.core.finding import Finding
from shapeguard.lint.atoms import atoms
from shapeguard.lint.rule import Groups, Rule


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


def candidates(source: str | bytes, rules: Sequence[type[Rule]]) -> list[type[Rule]]:
    """Give the rules whose words stand in the text, outside comments and texts in triple quotes.

    Each word is looked for once, however many rules wait for it. Bytes are as good as text, and need no decoding: they
    only get the first, wider look.
    """
    left = _with_words(source, rules)
    if isinstance(source, bytes):
        return left
    left = _with_pattern(source, left)
    if not left:
        return left
    bare = _bare(source)
    return _with_pattern(bare, _with_words(bare, left))


def _with_pattern(source: str, rules: Sequence[type[Rule]]) -> list[type[Rule]]:
    # Rules about one call share its pattern, which is looked for once.
    found = {each: any(re.search(pattern, source) for pattern in each) for each in {rule.patterns for rule in rules}}
    return [rule for rule in rules if not rule.patterns or found[rule.patterns]]


def could_match(tree: ast.Module, rule: type[Rule]) -> bool:
    """Whether the atoms of the tree (see `atoms`) hold all of some group of the rule's `gate`."""
    if not rule.gate:
        return True
    found: frozenset[str] | None = getattr(tree, "_atoms", None)
    if found is None:
        # Kept on the tree, so that all rules share one walk.
        found = tree._atoms = atoms(tree)  # type: ignore[attr-defined]
    return any(found.issuperset(group) for group in rule.gate)


def check_source(
    source: str, *, rules: Sequence[type[Rule]], context: Context, tree: ast.Module | None = None
) -> list[Finding]:
    """Parse the text and give what the rules report; `SourceError` if it does not parse.

    The tree is Python's own, if its parser has taken the text already.
    """
    # Here and not at the top: most files never come this far, and libcst takes 0.2 s to import.
    from shapeguard.lint.flow.check import check

    return check(source, rules=rules, context=context, tree=tree)


# A comment, a text in triple quotes, or a plain text: the last is matched to be stepped over.
_SKIPPED = re.compile(
    r"""(#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?''')|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL,
)


def _bare(source: str) -> str:
    return _SKIPPED.sub(lambda match: "" if match[1] else match[0], source)


Branches: TypeAlias = "dict[str, Branches]"


class _Words(dict[str, bool]):
    """Which words stand in a text; each is looked for when it is first asked for."""

    def __init__(self, source: str | bytes) -> None:
        self.source = source

    def __missing__(self, word: str) -> bool:
        source = self.source
        if isinstance(source, bytes):
            found = word.encode() in source or (word[0] == "\n" and source.startswith(word[1:].encode()))
        else:
            found = word in source or (word[0] == "\n" and source.startswith(word[1:]))
        self[word] = found
        return found


def _with_words(source: str | bytes, rules: Sequence[type[Rule]]) -> list[type[Rule]]:
    words = _Words(source)
    return [rule for rule in rules if _holds(words, _branches(rule.triggers))]


def _holds(words: _Words, branches: Branches) -> bool:
    return any(words[word] and (not rest or _holds(words, rest)) for word, rest in branches.items())


@cache
def _branches(groups: Groups) -> Branches:
    """Give the groups by their first words, so that a word which many begin with is asked for once."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in groups:
        found.setdefault(first, []).append(tuple(rest))
    # A group that ends here is met whatever others want beside it.
    return {first: {} if () in rests else _branches(tuple(rests)) for first, rests in found.items()}
