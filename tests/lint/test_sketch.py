"""The sketch that rules look at first says what the full tree says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from shapeguard.lint.flow.check import parse
from shapeguard.lint.flow.facts import Facts
from shapeguard.lint.flow.sketch import sketch
from shapeguard.lint.rule import load_rules
from shapeguard.lint.visit import Context, check_source

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted(file for part in ("rules", "lint", "scripts") for file in (FIXTURES / part).rglob("*.py"))
RULES = list(load_rules().values())
BAD = 'from transformers import AutoModel\n\nmodel = AutoModel.from_pretrained("x", device_map="auto")\n'


def reported(flow: Facts) -> list[tuple[str, str]]:
    """What the rules say, without the places."""
    found = [rule(flow, Context()) for rule in RULES]
    for each in found:
        for call in flow.calls:
            each.visit_Call(call)
        each.visit_Module()
    return [(match.rule.code, match.message) for each in found for match in each.matches]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_rules_report_the_same_on_the_sketch_as_on_the_full_tree(file: Path) -> None:
    source = file.read_text()
    drawn = sketch(ast.parse(source), source)
    assert drawn is not None
    assert reported(Facts(*drawn)) == reported(Facts(parse(source)))


@pytest.mark.parametrize(
    "statement",
    ["match model:\n    case None:\n        pass\n", "try:\n    pass\nexcept* ValueError:\n    pass\n"],
    ids=["match", "except-star"],
)
def test_a_file_with_a_statement_that_has_no_sketch_is_judged_all_the_same(statement: str) -> None:
    source = BAD + statement
    tree = ast.parse(source)
    assert sketch(tree, source) is None
    assert [each.code for each in check_source(source, rules=RULES, context=Context(), tree=tree)] == ["SG101"]


@pytest.mark.parametrize(
    "expression",
    [
        'len(f"{x!r:>{w}}")',
        "f(*a, b=1, **c)",
        "x[1:2, ..., ~m]",
        "(await g(y for y in z if y))",
        "a if b < c <= d else -e",
    ],
)
def test_the_sketch_knows_the_text_of_an_expression(expression: str) -> None:
    source = f"async def run():\n    π = 1; value = {expression}\n"
    drawn = sketch(ast.parse(source), source)
    assert drawn is not None
    full, flow = Facts(parse(source)), Facts(*drawn)
    assert [flow.source_of(call.node) for call in flow.calls] == [full.source_of(call.node) for call in full.calls]
