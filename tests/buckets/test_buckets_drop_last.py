"""`drop_last` drops short steps only: a full step stays full, on any number of ranks."""

from __future__ import annotations

import pytest

from shapeguard.buckets.sampler import BucketSampler


@pytest.mark.parametrize(("num_rows", "kept"), [(5, 0), (6, 2), (7, 2), (8, 2), (12, 4), (13, 4)])
def test_full_steps_are_kept_on_three_ranks(num_rows: int, kept: int) -> None:
    ranks = [
        BucketSampler([3] * num_rows, [4], batch_size=2, rank=rank, world_size=3, drop_last=True) for rank in range(3)
    ]
    assert [sum(len(batch) for batch in sampler) for sampler in ranks] == [kept] * 3
