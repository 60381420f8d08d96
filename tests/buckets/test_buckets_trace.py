"""Training with buckets, traced: two graphs a bucket, whatever the rank."""

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
ROWS, EPOCHS, BUCKETS = 46, 2, 3


def trace(folder: Path, rank: int, world: int) -> Any:
    """Trace one rank's program and give the summary; without a process group, which changes no shape."""
    environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}
    run = folder / f"run-{rank}"
    command = [sys.executable, "-m", "shapeguard", "trace", "--run-dir", str(run), "--warmup-steps", "3", str(SCRIPT)]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))


def check(totals: Any) -> None:
    assert totals["neffs"] == 2 * BUCKETS
    assert totals["aot_graphs"] == {"forward": BUCKETS, "backward": BUCKETS, "inference": 0}
    # The sampler shows every bucket in the first steps.
    assert totals["after_warmup"]["regions"] == 0


def seen(folder: Path) -> Counter[tuple[int, ...]]:
    rows = [tuple(row) for file in folder.glob("seen-*.json") for row in json.loads(file.read_text(encoding="utf-8"))]
    return Counter(rows)


def test_training_with_three_buckets_compiles_six_graphs_and_sees_each_row_once_an_epoch(tmp_path: Path) -> None:
    check(trace(tmp_path, 0, 1)["totals"])
    assert len(seen(tmp_path)) == ROWS
    assert set(seen(tmp_path).values()) == {EPOCHS}


@pytest.mark.soak
def test_each_of_four_ranks_compiles_the_same_six_graphs_and_together_they_see_each_row_once(tmp_path: Path) -> None:
    summaries = [trace(tmp_path, rank, 4) for rank in range(4)]
    for summary in summaries:
        check(summary["totals"])
    keys = [{graph["key"] for graph in summary["graphs"]} for summary in summaries]
    assert all(each == keys[0] for each in keys)
    assert len(seen(tmp_path)) == ROWS
    assert set(seen(tmp_path).values()) == {EPOCHS}
