"""Training with buckets, traced: two graphs a bucket, on one rank and on four."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "fixtures" / "buckets" / "train.py"
ROWS, EPOCHS, BUCKETS, RANKS = 46, 2, 3, 4


def trace(folder: Path, *words: str) -> Any:
    """Trace a command and give the summary."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "shapeguard", "trace", "--run-dir", "run", "--warmup-steps", "3", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))


def check(totals: Any) -> None:
    assert totals["neffs"] == 2 * BUCKETS
    assert totals["aot_graphs"] == {"forward": BUCKETS, "backward": BUCKETS, "inference": 0}
    # The sampler shows every bucket in the first steps.
    assert totals["after_warmup"]["regions"] == 0


def seen(folder: Path) -> Counter[tuple[int, ...]]:
    rows = [tuple(row) for file in folder.glob("seen-*.json") for row in json.loads(file.read_text(encoding="utf-8"))]
    return Counter(rows)


def test_training_with_three_buckets_compiles_six_graphs_and_sees_each_row_once_an_epoch(tmp_path: Path) -> None:
    check(trace(tmp_path, str(SCRIPT))["totals"])
    assert len(seen(tmp_path)) == ROWS
    assert set(seen(tmp_path).values()) == {EPOCHS}


@pytest.mark.soak
def test_four_ranks_compile_the_same_six_graphs_and_together_see_each_row_once_an_epoch(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)]
    check(trace(tmp_path, "--", *launcher, str(SCRIPT))["totals"])
    assert len(list(tmp_path.glob("seen-*.json"))) == RANKS
    assert len(seen(tmp_path)) == ROWS
    assert set(seen(tmp_path).values()) == {EPOCHS}
