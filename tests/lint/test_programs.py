"""Whole programs as people write them: what is wrong in each is marked, and nothing else may be found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "lint"
MARK = re.compile(r"expect(-\d+)?: (SG\d+(?:, SG\d+)*)")


def marks(text: str, cell: int | None = None) -> set[tuple[int | None, int, str]]:
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        for mark in MARK.finditer(line):
            found |= {(cell, number + int(mark[1] or 0), code) for code in mark[2].split(", ")}
    return found


def expected(path: Path) -> set[tuple[int | None, int, str]]:
    if path.suffix != ".ipynb":
        return marks(path.read_text())
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    return {mark for number, cell in enumerate(cells, 1) for mark in marks("".join(cell["source"]), number)}


@pytest.mark.parametrize("path", sorted(filter(Path.is_file, PROGRAMS.iterdir())), ids=lambda path: path.name)
def test_a_program_has_the_findings_that_are_marked_and_no_others(path: Path) -> None:
    command = [sys.executable, "-m", "shapeguard", "lint", "--isolated", "--no-cache", "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    report = json.loads(done.stdout)
    assert not report["problems"]
    assert {(each.get("cell"), each["line"], each["code"]) for each in report["findings"]} == expected(path)
