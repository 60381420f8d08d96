"""Applies fixes: edits that do not overlap, round after round until nothing changes; no round may break the file."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shapeguard.core.finding import Edit, Finding, is_applicable

MAX_ROUNDS = 50
"""A guard against two rules that undo each other; real files need three or four."""

Check = Callable[[str], "list[Finding]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A text after all fixes."""

    text: str
    applied: tuple[Finding, ...]
    """Findings that were mended, as they were reported in their round."""
    left: tuple[Finding, ...]
    """What is still found in the new text."""


def fix_text(text: str, check: Check, *, unsafe: bool) -> Fixed:
    """Apply every applicable fix until none is left."""
    applied: list[Finding] = []
    seen = {text}
    findings = check(text)
    rejected: set[tuple[Edit, ...]] = set()
    for _ in range(MAX_ROUNDS):
        wanted = [f for f in findings if is_applicable(f, unsafe=unsafe) and _edits(f) not in rejected]
        new, done = _one_round(text, wanted, rejected)
        if not done or new in seen:
            break
        findings = check(new)
        seen.add(new)
        text = new
        rejected = set()
        applied += done
    return Fixed(text=text, applied=tuple(applied), left=tuple(findings))


def _edits(finding: Finding) -> tuple[Edit, ...]:
    assert finding.fix is not None
    return finding.fix.edits


def _one_round(text: str, wanted: Sequence[Finding], rejected: set[tuple[Edit, ...]]) -> tuple[str, list[Finding]]:
    """Apply what fits together; if the file breaks, apply one by one and leave out what breaks it."""
    chosen = without_overlap(wanted)
    new = apply_edits(text, [edit for finding in chosen for edit in _edits(finding)])
    if parses(new) or not parses(text):
        return new, chosen
    for finding in chosen:
        alone = apply_edits(text, _edits(finding))
        if parses(alone):
            return alone, [finding]
        rejected.add(_edits(finding))
    return text, []


def without_overlap(findings: Iterable[Finding]) -> list[Finding]:
    """Choose, in the order of the text, findings whose edits stay clear of each other; equal edits are one."""
    chosen: list[Finding] = []
    taken: set[Edit] = set()
    for finding in sorted(findings, key=lambda f: min((e.start, e.end) for e in _edits(f))):
        edits = set(_edits(finding))
        if _clash_among(sorted(edits, key=lambda e: (e.start, e.end))):
            continue
        if all(edit in taken or not any(_clash(edit, other) for other in taken) for edit in edits):
            chosen.append(finding)
            taken |= edits
    return chosen


def _clash_among(edits: Sequence[Edit]) -> bool:
    return any(before.end > after.start for before, after in pairwise(edits))


def _clash(one: Edit, other: Edit) -> bool:
    # Two that only touch may both insert there, and their order would be a guess: the second waits for the next round.
    return one.start <= other.end and other.start <= one.end


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Give the text after edits of its UTF-8 bytes; equal edits are applied once."""
    data = text.encode("utf-8")
    pieces: list[bytes] = []
    position = 0
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end)):
        pieces += [data[position : edit.start], edit.text.encode("utf-8")]
        position = edit.end
    return b"".join([*pieces, data[position:]]).decode("utf-8")


def parses(text: str) -> bool:
    """Whether Python accepts the text, repeated keyword arguments included."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not any(_repeats_keyword(node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _repeats_keyword(call: ast.Call) -> bool:
    # Python's parser lets this through, its compiler does not.
    names = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    return len(names) != len(set(names))
