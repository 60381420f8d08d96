"""Writes `fidelity.md`: each statement of the facts with its mark, what holds it, and what is not modelled.

The statements stand in `fixtures/facts`; their programs run in `tests/facts`. A statement that names a test which is
not there any more, or that has nothing to show, is an error: the page cannot be written.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MARKS = {
    "M": "read in the public source of April 2026",
    "D": "in AWS's documentation of October 2026",
    "T": "told by users of closed betas",
    "I": "inferred, never seen",
    "V": "tried on torch itself: what reaches a backend",
}
SHOWN_BY = ("ops", "keys", "graphs", "host", "moved", "prints", "has", "error")
RUNNER = "tests/facts/test_facts_statements.py::test_a_statement_holds"

_HEAD = """# What the simulation follows, statement by statement

What is publicly known of when TorchNeuron compiles, in statements. Each has a mark that says how it is known, and a
test that holds the simulated device to it; where there is none, the reason. Nothing here was run on Trainium.

"""
_LEGEND = """
A statement with ± rests on a guess, or on what may be otherwise in 2.14: counts that come from it carry the same sign
in the report, in the tables and in the totals.

"""


def page() -> str:
    """Give the page; raises ValueError for a statement that nothing holds."""
    sections = [tomllib.loads(file.read_text()) for file in sorted((ROOT / "fixtures" / "facts").glob("*.toml"))]
    rows = [row for section in sections for row in section["statement"]]
    for row in rows:
        _check(row)
    if twice := [name for name, times in Counter(row["id"] for row in rows).items() if times > 1]:
        raise ValueError(f"fixtures/facts: statements of one name: {', '.join(twice)}")
    parts = [_HEAD, *_marks(), *_counts(sections), _LEGEND]
    return "".join(parts + [line for section in sections for line in _section(section)])


def _marks() -> Iterator[str]:
    yield "| mark | |\n|---|---|\n"
    for mark, meaning in MARKS.items():
        yield f"| {mark} | {meaning} |\n"
    yield "\n"


def _counts(sections: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Say how many statements of each mark a test holds, of how many; the rest have a reason."""
    yield f"| section | {' | '.join(MARKS)} | not modelled |\n|---|{'---|' * (len(MARKS) + 1)}\n"
    everything: list[dict[str, Any]] = []
    for section in sections:
        everything += section["statement"]
        yield _count(section["title"], section["statement"])
    yield _count("all", everything)


def _count(title: str, rows: list[dict[str, Any]]) -> str:
    cells = []
    for mark in MARKS:
        own = [row for row in rows if row["mark"] == mark]
        held = sum("reason" not in row for row in own)
        cells.append(f"{held} of {len(own)}" if own else "")
    return f"| {title} | {' | '.join(cells)} | {sum('reason' in row for row in rows)} |\n"


def _section(section: dict[str, Any]) -> Iterator[str]:
    yield f"\n## {section['title']}\n\n| statement | mark | held by |\n|---|---|---|\n"
    for row in section["statement"]:
        says = row["says"] + (f" *{_sentence(row['note'])}*" if "note" in row else "")
        mark = row["mark"] + (" ±" if row.get("guess") else "")
        yield f"| {_cell(says)} | {mark} | {_cell(_holder(row))} |\n"


def _holder(row: dict[str, Any]) -> str:
    if "reason" in row:
        return f"not modelled: {row['reason']}"
    if "test" in row:
        file, _, name = row["test"].partition("::")
        return f"[{name}](../{file})"
    return f"[statement {row['id']}](../{RUNNER.partition('::')[0]})"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _check(row: dict[str, Any]) -> None:
    """See to it that something holds a statement, or that there is a reason."""
    where = f"fixtures/facts: statement {row['id']}"
    if row["mark"] not in MARKS:
        raise ValueError(f"{where} has the mark {row['mark']!r}: one of {', '.join(MARKS)}")
    ways = [way for way in ("program", "test", "reason") if way in row]
    if len(ways) != 1:
        raise ValueError(f"{where} has {' and '.join(ways) or 'neither program, test nor reason'}: one is needed")
    if "program" in row and not any(name in row for name in SHOWN_BY):
        raise ValueError(f"{where}: its program shows nothing, give one of {', '.join(SHOWN_BY)}")
    test = row.get("test", RUNNER)
    file, _, name = test.partition("::")
    name, _, parameter = name.partition("[")
    if name not in _tests(file) or parameter.rstrip("]") not in _text(file):
        raise ValueError(f"{where} names {test}, which is not there")


@cache
def _tests(file: str) -> frozenset[str]:
    """Name the test functions of a file, without running it."""
    functions = (node for node in ast.walk(ast.parse(_text(file))) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@cache
def _text(file: str) -> str:
    path = ROOT / file
    return path.read_text(encoding="utf-8") if path.is_file() else ""
