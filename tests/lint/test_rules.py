"""Every rule: its marked fixtures, its page's examples, its fixes, and what it costs to load."""

from __future__ import annotations

import ast
import inspect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from shapeguard.core.finding import Finding
from shapeguard.lint.rule import Rule, load_rules
from shapeguard.lint.visit import Context, Lengths, SourceError, candidates, check_source, could_match, may_match

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
RULES = load_rules()
PROGRAMS = sorted(path for path in FIXTURES.glob("SG*/*.py") if not path.name.endswith(".fixed.py"))
LENGTHS = Lengths(train=256, prompt=64, cache=128, new_tokens=32)
MARK = re.compile(r"expect(-\d+)?: (SG\d+(?:, SG\d+)*)")


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def active(code: str) -> list[type[Rule]]:
    """The default selection, and the rule itself where it is off by default."""
    return [rule for rule in RULES.values() if rule.on_by_default or rule.code == code]


def lint(source: str, rules: list[type[Rule]], **context: object) -> list[Finding]:
    """What the linter's own order of gates lets through, judged."""
    rules = candidates(source, candidates(source.encode(), rules))
    tree = ast.parse(source)
    rules = [rule for rule in rules if could_match(tree, rule)]
    return check_source(source, rules=rules, context=Context(lengths=LENGTHS, **context))  # type: ignore[arg-type]


def marked(source: str) -> set[tuple[int, str]]:
    found = set()
    for number, line in enumerate(source.splitlines(), 1):
        if mark := MARK.search(line):
            found |= {(number + int(mark[1] or 0), code) for code in mark[2].split(", ")}
    return found


def fixed(source: str, findings: list[Finding]) -> str:
    """Apply what does not overlap, from the end."""
    edits = {(edit.start, edit.end, edit.text) for each in findings if each.fix for edit in each.fix.edits}
    data, last = source.encode(), None
    for start, end, text in sorted(edits, reverse=True):
        if last is None or end <= last:
            data, last = data[:start] + text.encode() + data[end:], start
    return data.decode()


def section(rule: type[Rule], title: str) -> str:
    page = inspect.cleandoc(rule.__doc__ or "")
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found, f"{rule.code} has no section {title!r}"
    return found[1].strip()


def block(rule: type[Rule], title: str) -> str:
    found = re.search(r"```python\n(.*?)```", section(rule, title), re.DOTALL)
    assert found, f"{rule.code} has no python block under {title!r}"
    return found[1]


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_a_fixture_has_findings_on_its_marked_lines_and_nowhere_else(path: Path) -> None:
    source = path.read_text()
    found = {(finding.span.line, finding.code) for finding in lint(source, active(path.parent.name))}
    assert found == marked(source)


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_the_gates_let_everything_through_that_the_rules_would_report(path: Path) -> None:
    source = path.read_text()
    rules = active(path.parent.name)
    without_gates = check_source(source, rules=rules, context=Context(lengths=LENGTHS))
    assert lint(source, rules) == without_gates


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("SG*/*.fixed.py")), ids=name)
def test_the_fixes_of_a_fixture_give_the_fixed_file(path: Path) -> None:
    source = path.with_name(path.name.replace(".fixed", "")).read_text()
    assert fixed(source, lint(source, active(path.parent.name))) == path.read_text()


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_a_fixed_program_parses_keeps_its_comments_and_has_nothing_more_to_fix(path: Path) -> None:
    rules = active(path.parent.name)
    text = path.read_text()
    for _ in range(4):
        text = fixed(text, lint(text, rules))
    ast.parse(text)
    assert comments(text) == comments(path.read_text())
    assert not [finding for finding in lint(text, rules) if finding.fix and finding.fix.edits]


def comments(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_example_of_a_rule_is_flagged_and_its_right_form_is_not(rule: type[Rule]) -> None:
    assert lint(block(rule, "Example"), [rule])
    assert not lint(block(rule, "Instead"), [rule])
    assert section(rule, "Why it costs")
    assert section(rule, "Fix")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_has_a_fixture_with_a_marked_line_and_one_without(rule: type[Rule]) -> None:
    own = [path.read_text() for path in PROGRAMS if path.parent.name == rule.code]
    lines = [line for source in own for line in source.splitlines()]
    assert any(f"expect: {rule.code}" in line for line in lines)
    assert any(line and "expect" not in line for line in lines)


def test_rules_load_without_libcst() -> None:
    code = (
        "import sys; from shapeguard.lint.rule import load_rules; from shapeguard.lint.visit import may_match;"
        "assert load_rules(); may_match('device_map', load_rules()['SG101']); sys.exit('libcst' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_words_in_comments_and_docstrings_pass_the_text_filter_by() -> None:
    rule = RULES["SG101"]
    assert not may_match('"""device_map="auto" """\n# device_map="auto"\nx = 1\n', rule)
    assert may_match('load(device_map="auto")\n', rule)
    assert may_match('x = "#"; load(device_map="auto")\n', rule)


def test_a_text_that_does_not_parse_says_where() -> None:
    with pytest.raises(SourceError) as raised:
        check_source("x = 1\ndef (:\n", rules=list(RULES.values()), context=Context())
    assert raised.value.line == 2


def sources(code: str) -> Iterator[str]:
    return (path.read_text() for path in PROGRAMS if path.parent.name == code)


@pytest.mark.parametrize("code", [rule.code for rule in RULES.values() if rule.neuron_only])
def test_a_rule_for_neuron_is_silent_elsewhere(code: str) -> None:
    for source in sources(code):
        assert code not in {finding.code for finding in lint(source, active(code), neuron=False)}


def test_sg201_waits_for_the_release_whose_generate_moves_its_inputs() -> None:
    source = (FIXTURES / "SG201" / "ways.py").read_text()
    rule = [RULES["SG201"]]
    assert not lint(source, rule, transformers=(5, 19))
    assert not lint(source, rule, transformers=(4, 57))
    assert lint(source, rule, transformers=(5, 20))


def test_offsets_count_bytes_and_columns_count_characters() -> None:
    source = 'from torch.utils.data import DataLoader\nx = "ä\u20ac\U0001f600"; DataLoader(train, 8, shuffle=True)\n'
    (finding,) = check_source(source, rules=[RULES["SG304"]], context=Context())
    call = "DataLoader(train, 8, shuffle=True)"
    assert source.encode()[finding.span.start : finding.span.end].decode() == call
    assert finding.span.column == source.splitlines()[1].index(call) + 1


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_are_counted_and_kept_with_either_line_end(newline: str) -> None:
    source = (FIXTURES / "SG202" / "add.py").read_text().replace("\n", newline)
    findings = check_source(source, rules=[RULES["SG202"]], context=Context())
    assert {(finding.span.line, finding.code) for finding in findings} == marked(source)
    assert fixed(source, findings) == (FIXTURES / "SG202" / "add.fixed.py").read_text().replace("\n", newline)
