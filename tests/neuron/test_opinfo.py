"""PyTorch's own samples for the registered operators give on the device what they give on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.neuron.conftest import run_on_device

PROGRAM = Path(__file__).with_name("opinfo.py")

# What may differ, and why.
KNOWN = {
    "sparse.mm.reduce": "sparse tensors are refused, as on Neuron",
    "arange": "samples that name no device make a tensor of the host",
}


def check(folder: Path, most: int, floor: int) -> None:
    printed, _ = run_on_device(folder, PROGRAM, str(most), timeout=1800)
    found = json.loads(printed)
    wrong = found["wrong"]
    assert {name: rows for name, rows in wrong.items() if name.split(" ")[0] not in KNOWN} == {}
    assert found["samples"] >= floor
    assert sum(rows[0] for rows in wrong.values()) <= 0.02 * found["samples"]


def test_a_share_of_the_samples_is_right(tmp_path: Path) -> None:
    check(tmp_path, most=2, floor=700)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all_samples_are_right(tmp_path: Path) -> None:
    check(tmp_path, most=0, floor=5000)
