"""Comments that suppress, and those that suppress nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HEAD = "from transformers import AutoModel\n\n"
CALL = 'AutoModel.from_pretrained("x", device_map="auto")'
LINT = ("lint", "--isolated", "--no-cache")


@pytest.fixture
def lint(shapeguard):
    def run(text: str, *args: str) -> list[tuple[str, int]]:
        Path("a.py").write_text(text)
        document = json.loads(shapeguard(*LINT, "--json", *args, "a.py").out)
        assert document["problems"] == []
        return [(finding["code"], finding["line"]) for finding in document["findings"]]

    return run


@pytest.mark.parametrize(
    "comment",
    [
        "# shapeguard: ignore[SG101]",
        "# shapeguard: ignore[SG101] only one core here",
        "#shapeguard:ignore[sg101]",
        "# type: ignore  # shapeguard: ignore[SG202, SG101]",
        "# noqa: SG101",
        "# noqa:E501,SG101",
        "# NOQA: E501 SG101 because",
        "# noqa",
    ],
)
def test_a_comment_at_the_end_of_the_line_suppresses(lint, comment):
    assert ("SG101", 3) not in lint(f"{HEAD}m = {CALL}  {comment}\n")


@pytest.mark.parametrize("comment", ["# shapeguard: ignore[SG202]", "# noqa: SG202", "# noqa: E501", "# ignore[SG101]"])
def test_another_code_does_not_suppress(lint, comment):
    assert ("SG101", 3) in lint(f"{HEAD}m = {CALL}  {comment}\n", "--ignore", "SG9")


def test_a_comment_on_its_own_line_is_for_the_next_statement(lint):
    text = f"{HEAD}# shapeguard: ignore[SG101]\nm = {CALL}\nn = {CALL}\n"
    assert lint(text) == [("SG101", 5)]


def test_a_comment_before_a_function_is_for_all_of_it(lint):
    body = f"    if x:\n        {CALL}\n\n    {CALL}\n"
    text = f"{HEAD}# shapeguard: ignore[SG101] a tool\n@decorated\ndef f():\n{body}\n\n{CALL}\n"
    assert lint(text) == [("SG101", 12)]


def test_a_comment_before_an_if_is_for_its_else_too(lint):
    text = f"{HEAD}# shapeguard: ignore[SG101]\nif x:\n    {CALL}\nelse:\n    {CALL}\n{CALL}\n"
    assert lint(text) == [("SG101", 8)]


@pytest.mark.parametrize("place", ["first", "line", "last"])
def test_a_statement_of_several_lines_is_suppressed_from_its_ends_and_from_the_line_itself(lint, place):
    comment = "  # shapeguard: ignore[SG101]"
    first, line, last = (comment if place == name else "" for name in ("first", "line", "last"))
    text = f'{HEAD}m = AutoModel.from_pretrained({first}\n    "x",\n    device_map="auto",{line}\n){last}\n'
    assert lint(text) == []


def test_a_comment_inside_brackets_is_for_the_next_line(lint):
    comments = "    # shapeguard: ignore[SG101]\n    # why\n"
    text = f'{HEAD}m = AutoModel.from_pretrained(\n    "x",\n{comments}    device_map="auto",\n)\n'
    assert lint(text) == []


def test_a_file_comment_is_for_the_whole_file(lint):
    assert lint(f"{HEAD}{CALL}\n{CALL}\n# shapeguard: file-ignore[SG101] a tool\n") == []


def test_the_word_in_a_text_suppresses_nothing(lint):
    assert lint(f'{HEAD}m = {CALL}; s = "# shapeguard: ignore[SG101]"\n') == [("SG101", 3)]


def test_an_unused_suppression_is_found_and_removed(lint, shapeguard):
    text = f"{HEAD}m = 1  # shapeguard: ignore[SG101] old\n# shapeguard: ignore[SG202]\nn = 2  # noqa: E501, SG101\n"
    assert lint(text) == [("SG901", 3), ("SG901", 4), ("SG901", 5)]
    assert shapeguard(*LINT, "--fix", "a.py").code == 0
    assert Path("a.py").read_text() == f"{HEAD}m = 1\nn = 2  # noqa: E501\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = 1  # shapeguard: ignore[SG101]  # noqa: E501", "m = 1  # noqa: E501"),
        ("m = 1  # type: ignore  # shapeguard: ignore[SG101]", "m = 1  # type: ignore"),
        (f"m = {CALL}  # shapeguard: ignore[SG202, SG101, SG203] why", f"m = {CALL}  # shapeguard: ignore[SG101] why"),
        (f"m = {CALL}  # shapeguard: ignore[SG101,SG999]", f"m = {CALL}  # shapeguard: ignore[SG101]"),
        ("m = 1  # noqa: SG101", "m = 1"),
        ("m = 1  # noqa: SG101 E501", "m = 1  # noqa: E501"),
        ("# shapeguard: file-ignore[SG101]\nm = 1", "m = 1"),
    ],
)
def test_only_the_unused_part_of_a_comment_goes(shapeguard, before, after):
    Path("a.py").write_text(f"{HEAD}{before}\n")
    shapeguard(*LINT, "--fix", "a.py")
    assert Path("a.py").read_text() == f"{HEAD}{after}\n"


def test_a_code_that_is_not_selected_is_not_called_unused(lint):
    assert lint("m = 1  # shapeguard: ignore[SG101]\n", "--select", "SG2,SG901") == []


def test_a_comment_without_codes_says_what_to_write(lint, shapeguard):
    assert lint(f"{HEAD}m = {CALL}  # shapeguard: ignore\n") == [("SG101", 3), ("SG901", 3)]
    ran = shapeguard(*LINT, "--output-format", "concise", "a.py")
    assert "it names no code: write `ignore[SG201]`" in ran.out


def test_suppressed_findings_reach_sarif_with_their_reason(shapeguard):
    Path("a.py").write_text(f"{HEAD}m = {CALL}  # shapeguard: ignore[SG101] - one core\n")
    ran = shapeguard(*LINT, "--output-format", "sarif", "a.py")
    assert ran.code == 0
    (result,) = json.loads(ran.out)["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "inSource", "justification": "one core"}]
