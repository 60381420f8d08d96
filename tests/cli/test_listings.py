"""Commands that answer a question say the answer in every format of text, and not only where findings are expected."""

from __future__ import annotations

import json

import pytest

from shapeguard.report.reporter import format_names

# SARIF holds results on code: of what is listed only rules have a place in it.
TEXTS = [name for name in format_names() if name not in ("json", "json-lines", "sarif")]
ASKED = {
    "config": (("config", "--isolated"), "lint.neuron"),
    "rule": (("rule", "SG304"), "RaggedLastBatch"),
    "rule --all": (("rule", "--all"), "RaggedLastBatch"),
    "plan": (("plan", "--lengths", "lengths.txt", "--max-graphs", "1"), "128"),
    "cache dir": (("cache", "dir", "--isolated", "--cache-dir", "here"), "here"),
    "cache status": (("cache", "status", "--isolated", "--cache-dir", "here"), "eager operators"),
}


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("asked", ASKED)
def test_an_answer_stands_in_every_format_of_text(shapeguard, tmp_path, asked, form):
    (tmp_path / "lengths.txt").write_text("12 100\n")
    args, word = ASKED[asked]
    ran = shapeguard(*args, "--output-format", form)
    assert ran.code == 0, ran.err
    assert word in ran.out


def test_settings_and_rules_are_a_line_each_for_programs(shapeguard):
    settings = _lines(shapeguard("config", "--isolated", "--output-format", "json-lines").out)
    assert {"key": "lint.neuron", "value": "all", "from": "default"} in settings
    rules = _lines(shapeguard("rule", "--all", "--output-format", "json-lines").out)
    assert [rule["code"] for rule in rules] == sorted(rule["code"] for rule in rules)
    assert "SG304" in {rule["code"] for rule in rules}


def _lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_rules_are_rules_in_sarif_too(shapeguard):
    (run,) = json.loads(shapeguard("rule", "SG304", "SG101", "--output-format", "sarif").out)["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SG304", "SG101"]
    assert run["results"] == []
