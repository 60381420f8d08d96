"""Each statement of the facts that can be shown by a few lines: the device counts what it says."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.facts.run_statements import outcomes

FACTS = Path(__file__).parents[2] / "fixtures" / "facts"
STATEMENTS: dict[str, dict[str, Any]] = {
    row["id"]: row
    for file in sorted(FACTS.glob("*.toml"))
    for row in tomllib.loads(file.read_text())["statement"]
    if "program" in row
}
CHECKED = ("ops", "keys", "graphs", "host", "moved", "uncertain", "uncertain_graphs", "prints")


@cache
def ran(environ: str, folder: Path) -> dict[str, Any]:
    programs = {
        name: row["program"] for name, row in STATEMENTS.items() if json.dumps(row.get("environ", {})) == environ
    }
    return outcomes(folder, programs, **json.loads(environ))


@pytest.mark.xdist_group("facts")
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_holds(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "facts"
    folder.mkdir(exist_ok=True)
    row = STATEMENTS[name]
    found = ran(json.dumps(row.get("environ", {})), folder)[name]
    assert found["error"] == row.get("error", "")
    assert {key: found[key] for key in CHECKED if key in row} == {key: row[key] for key in CHECKED if key in row}
    for op, times in row.get("has", {}).items():
        assert found["ops"].count(op) == times
