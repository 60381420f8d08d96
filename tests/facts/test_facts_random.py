"""Laws of keys, on random programs (hypothesis runs in the traced process: it can claim the device only once)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.neuron.conftest import run_on_device

PROGRAMS = Path(__file__).parent / "random_programs.py"


def hold(folder: Path, examples: int) -> None:
    """Run the laws on both inner devices, with other seeds of hashing: the keys are the same."""
    found = []
    for inner, seed in (("cpu", "1"), ("meta", "2")):
        printed, _ = run_on_device(folder, PROGRAMS, str(examples), inner=inner, timeout=550, PYTHONHASHSEED=seed)
        found.append(json.loads(printed))
    assert len(found[0]) >= examples
    assert found[0] == found[1]


def test_keys_of_random_programs_hold_what_they_should_and_nothing_else_ci_share(tmp_path: Path) -> None:
    hold(tmp_path, 60)


@pytest.mark.soak
def test_keys_of_random_programs_hold_what_they_should_and_nothing_else(tmp_path: Path) -> None:
    hold(tmp_path, 1500)
