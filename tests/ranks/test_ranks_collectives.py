"""The process group `neuron`: all its collectives, with and without values, and what is counted for them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from launching import torchrun


def test_every_collective_gives_what_it_should(tmp_path: Path) -> None:
    ran = torchrun(tmp_path, "collectives.py", ranks=2)
    assert ran.code == 0, ran.report[-4000:]
    assert ran.out.split() == ["ok", "ok"]
    assert ran.summary["totals"]["collective"] > 20


@pytest.mark.soak
def test_every_collective_works_without_values(tmp_path: Path) -> None:
    ran = torchrun(tmp_path, "collectives.py", ranks=2, options=("--inner", "meta"), VALUES="0")
    assert ran.code == 0, ran.report[-4000:]
    assert ran.out.split() == ["ok", "ok"]


def test_a_rank_that_dies_ends_all_with_its_traceback_and_a_readable_run(tmp_path: Path) -> None:
    begin = time.monotonic()
    ran = torchrun(tmp_path, "dies.py", ranks=2)
    assert time.monotonic() - begin < 60, "30 s after the death; the rest is starting"
    assert ran.code == 1
    assert "ValueError: the data of rank 1 ran out" in ran.report
    assert ran.summary["exit_code"] == 1
    assert [row["rank"] for row in ran.summary["ranks"]] == [0, 1]
    assert ran.summary["divergence"] is None, "what a rank that broke off did not come to do is no difference"


def test_two_ranks_share_the_cache_on_disk_and_count_each_for_itself(tmp_path: Path) -> None:
    cache = tmp_path / "neffs"
    ran = torchrun(
        tmp_path,
        "caches.py",
        ranks=2,
        TORCH_NEURONX_NEFF_CACHE_DIR=str(cache),
        TORCH_NEURONX_METRICS_ENABLED="1",
    )
    assert ran.code == 0, ran.report[-4000:]
    assert ran.out.split() == ["ok", "ok"]
