"""Scripts with two independent causes each: both are named, at the right line, with the right counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.trace.tracing import REPOSITORY, trace

FOLDER = REPOSITORY / "fixtures" / "causes"
EXPECTED: dict[str, list[dict[str, Any]]] = json.loads((FOLDER / "expected.json").read_text())
ALWAYS = ("mask_and_list", "read_and_batch", "rows_and_lengths")
"""These are traced in every run of the tests; all of them in the long ones."""


def test_every_script_has_its_causes() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.soak) for name in sorted(EXPECTED)]
)
def test_both_causes_are_named_with_their_counts(name: str, tmp_path: Path) -> None:
    shutil.copy(FOLDER / f"{name}.py", tmp_path)
    run = trace(tmp_path, tmp_path / f"{name}.py")
    assert run.code == 0, run.report
    causes = run.summary["causes"]
    assert len(causes) == len(EXPECTED[name]), run.report
    for wanted, cause in zip(EXPECTED[name], causes, strict=True):
        seen = {**cause, "line": cause["site"]["line"]}
        assert {key: seen[key] for key in wanted} == wanted
        assert f"{name}.py:{wanted['line']}" in run.report


def test_what_dynamo_says_of_a_break_shows_only_the_users_code(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "read_and_batch.py", tmp_path)
    run = trace(tmp_path, tmp_path / "read_and_batch.py")
    assert "Graph break" in run.report
    assert "shapeguard/trace" not in run.report
