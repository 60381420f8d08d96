"""The device runs statements of every kind as the CPU does, and keeps nothing alive."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.neuron.conftest import run_on_device

HERE = Path(__file__).parent
NAMES = re.findall(
    r"^@statement\ndef (\w+)", "\n".join(path.read_text() for path in sorted(HERE.glob("statements*.py"))), re.MULTILINE
)


@cache
def outcomes(inner: str, folder: Path) -> dict[str, str]:
    """Run all statements in one process: importing torch takes longer than they do."""
    printed, _ = run_on_device(folder, HERE / "run_statements.py", inner, inner=inner, timeout=550)
    return json.loads(printed)


@pytest.mark.xdist_group("statements")
@pytest.mark.parametrize("inner", ["cpu", "meta"])
@pytest.mark.parametrize("name", NAMES)
def test_a_statement_gives_what_it_gives_on_the_cpu(
    name: str, inner: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"statements-{inner}"
    folder.mkdir(exist_ok=True)
    assert outcomes(inner, folder)[name] == ""
