"""Batches of one bucket each: no row lost, the same steps on every rank, the same order each time."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from shapeguard.buckets import BucketCollator, BucketRows, BucketSampler

BUCKETS = [8, 16, 32]
Shape = tuple[int, ...]


def rows_of(lengths: list[int]) -> list[dict[str, list[int]]]:
    """Rows whose first token is their number."""
    return [
        {"input_ids": [number + 1] * length, "labels": [number + 1] * length} for number, length in enumerate(lengths)
    ]


def epoch(
    lengths: list[int], *, batch_size: int, world: int, number: int = 0, **more: Any
) -> list[list[dict[str, Any]]]:
    """The batches of every rank, through a loader."""
    rows = BucketRows(rows_of(lengths))
    collate = BucketCollator(buckets=BUCKETS, batch_size=batch_size, pad_token_id=0)
    ranks = []
    for rank in range(world):
        sampler = BucketSampler(lengths, BUCKETS, batch_size=batch_size, rank=rank, world_size=world, **more)
        sampler.set_epoch(number)
        batches = list(DataLoader(rows, batch_sampler=sampler, collate_fn=collate))
        assert len(batches) == len(sampler)
        ranks.append(batches)
    return ranks


def seen(ranks: list[list[dict[str, Any]]]) -> Counter[int]:
    """How often each row was trained on: it has labels, and its tokens are its own."""
    found: Counter[int] = Counter()
    for batch in (each for batches in ranks for each in batches):
        for ids, labels, mask in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True):
            if (labels != -100).any():
                assert torch.equal(labels != -100, mask == 1)
                found[int(ids[0]) - 1] += 1
    return found


@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
def test_every_row_is_seen_once_and_all_ranks_take_the_same_shapes(world: int) -> None:
    chance = Random(world)
    for _ in range(60):
        lengths = [chance.randint(1, 32) for _ in range(chance.randint(1, 70))]
        batch_size = chance.randint(1, 6)
        ranks = epoch(lengths, batch_size=batch_size, world=world)
        assert seen(ranks) == Counter(range(len(lengths)))
        shapes = [[tuple(batch["input_ids"].shape) for batch in batches] for batches in ranks]
        assert all(each == shapes[0] for each in shapes)
        assert {shape[0] for shape in shapes[0]} == {batch_size}
        assert {shape[1] for shape in shapes[0]} <= set(BUCKETS)


def fillers(lengths: list[int], *, batch_size: int, world: int) -> int:
    ranks = [
        list(BucketSampler(lengths, BUCKETS, batch_size=batch_size, rank=r, world_size=world)) for r in range(world)
    ]
    return sum(getattr(index, "is_filler", False) for batches in ranks for batch in batches for index in batch)


def test_every_rank_has_a_row_of_its_own_in_every_step() -> None:
    chance = Random(3)
    for _ in range(500):
        world = chance.randint(2, 6)
        lengths = [chance.choice([3, 12, 30, chance.randint(1, 32)]) for _ in range(world + chance.randint(0, 50))]
        assert fillers(lengths, batch_size=chance.randint(2, 5), world=world) == 0


def test_a_rank_has_masked_rows_only_where_rows_cannot_be_dealt_out() -> None:
    assert fillers([3, 12], batch_size=2, world=4) == 2
    assert fillers([3] * 9, batch_size=1, world=4) == 3
    assert fillers([3] * 5 + [12] * 3, batch_size=1, world=4) == 0


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    lengths = [Random(5).randint(1, 32) for _ in range(3)] + list(range(1, 33)) * 3

    def order(seed: int, epoch: int) -> list[list[int]]:
        sampler = BucketSampler(lengths, BUCKETS, batch_size=4, seed=seed, rank=0, world_size=1)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_an_epoch_begins_with_a_batch_of_each_bucket() -> None:
    lengths = list(range(1, 33)) * 3
    for number in range(5):
        batches = epoch(lengths, batch_size=4, world=1, number=number)[0]
        assert [batch["input_ids"].shape[1] for batch in batches[:3]] == [32, 16, 8]


def test_without_shuffling_rows_keep_their_order_in_a_bucket() -> None:
    sampler = BucketSampler([3, 30, 4, 5, 6, 31], BUCKETS, batch_size=2, shuffle=False, rank=0, world_size=1)
    assert list(sampler) == [[1, 5], [0, 2], [3, 4]]


def test_drop_last_gives_full_batches_of_the_buckets_own_rows() -> None:
    lengths = [5] * 11 + [20] * 3
    for rank in range(2):
        sampler = BucketSampler(lengths, BUCKETS, batch_size=2, drop_last=True, rank=rank, world_size=2)
        assert [len(batch) for batch in sampler] == [2, 2]
        assert len(sampler) == 2


def test_on_one_rank_the_data_set_needs_no_wrapping() -> None:
    lengths = [3, 9, 30, 4, 10]
    sampler = BucketSampler(lengths, BUCKETS, batch_size=2, rank=0, world_size=1)
    collate = BucketCollator(buckets=BUCKETS, batch_size=2, pad_token_id=0)
    loader = DataLoader(rows_of(lengths), batch_sampler=sampler, collate_fn=collate)
    assert seen([list(loader)]) == Counter(range(5))


class Gathered:
    """Reads rows as a `datasets.Dataset` does: all of a batch at once, after `int()` of the first and last number."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __getitems__(self, numbers: list[Any]) -> list[Any]:
        assert int(max(numbers)) < len(self.rows)
        return [self.rows[number] for number in np.fromiter(numbers, np.int64)]


@pytest.mark.parametrize("kind", [list, Gathered])
def test_on_several_ranks_a_data_set_that_is_not_wrapped_is_told_at_the_first_batch_that_needs_it(kind: Any) -> None:
    sampler = BucketSampler([3, 3, 30], BUCKETS, batch_size=2, rank=1, world_size=2)
    loader = DataLoader(kind(rows_of([3, 3, 30])), batch_sampler=sampler, collate_fn=list)
    with pytest.raises(TypeError) as caught:
        next(iter(loader))
    assert str(caught.value) == (
        "on several ranks a batch can be padded to the bucket of another rank's row: "
        "give the loader BucketRows(dataset), from shapeguard.buckets"
    )


def test_numbers_of_rows_can_be_sorted_and_counted_on_several_ranks() -> None:
    found = [
        i
        for r in range(2)
        for b in BucketSampler([3, 30, 4, 9], BUCKETS, batch_size=2, rank=r, world_size=2)
        for i in b
    ]
    assert sorted(found) == [0, 1, 2, 3]
    assert Counter(found) == Counter(range(4))


def test_loader_workers_get_the_marks_too() -> None:
    lengths = [3, 30, 4]
    sampler = BucketSampler(lengths, BUCKETS, batch_size=2, rank=1, world_size=2)
    collate = BucketCollator(buckets=BUCKETS, batch_size=2, pad_token_id=0)
    loader = DataLoader(BucketRows(rows_of(lengths)), batch_sampler=sampler, collate_fn=collate, num_workers=1)
    assert [tuple(batch["input_ids"].shape) for batch in loader] == [(2, 32)]


def test_ranks_and_their_number_come_from_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    lengths = [5] * 8
    from_torchrun = BucketSampler(lengths, BUCKETS, batch_size=2)
    assert list(from_torchrun) == list(BucketSampler(lengths, BUCKETS, batch_size=2, rank=1, world_size=2))


def test_batch_sizes_can_differ_by_bucket() -> None:
    lengths = [5] * 9 + [20] * 3
    sizes = {8: 4, 32: 2}
    sampler = BucketSampler(lengths, sizes, rank=0, world_size=1)
    collate = BucketCollator(buckets=sizes, pad_token_id=0)
    loader = DataLoader(rows_of(lengths), batch_sampler=sampler, collate_fn=collate)
    assert {tuple(batch["input_ids"].shape) for batch in loader} == {(4, 8), (2, 32)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"lengths": [4, 40]},
            "row 1 has 40 tokens and fits no bucket, the largest is 32; "
            "truncate=True, in the collator too, cuts such rows",
        ),
        ({"lengths": []}, "there are no rows: lengths is empty"),
        ({"batch_size": None}, "give batch_size: the buckets do not say how many rows a batch has"),
        ({"batch_size": -1}, "batch_size must be at least 1, not -1"),
        ({"rank": 4, "world_size": 4}, "rank 4 is not one of 4 ranks"),
        ({"rank": None}, "give rank and world_size together, or neither"),
    ],
)
def test_what_cannot_be_sampled_is_named(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"lengths": [4], "batch_size": 2, "rank": 0, "world_size": 1, **options}
    with pytest.raises(ValueError) as caught:
        BucketSampler(given.pop("lengths"), BUCKETS, **given)
    assert str(caught.value) == message
