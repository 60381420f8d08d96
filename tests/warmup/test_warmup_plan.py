"""The plan: the fewest recipes, what is unknown, shards, room in memory; pure."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from shapeguard.core.errors import UsageError
from shapeguard.core.graphs import GraphKey, GraphRecord, ModelKey, Neff
from shapeguard.warmup.cover import cover
from shapeguard.warmup.estimate import Estimator, makespan_s
from shapeguard.warmup.plan import shard_of
from shapeguard.warmup.schedule import Memory, slots_for
from shapeguard.warmup.values import Need
from shapeguard.warmup.view import size_of, time_of


def fewest(wanted: frozenset[int], sets: dict[str, frozenset[int]]) -> int:
    for number in range(len(sets) + 1):
        for names in combinations(sets, number):
            if wanted <= frozenset().union(*(sets[name] for name in names)):
                return number
    raise AssertionError


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_of_fewer_recipes_covers_what_is_missing(seed: int) -> None:
    rng = random.Random(seed)
    sets = {f"r{n}": frozenset(rng.sample(range(14), rng.randint(1, 6))) for n in range(rng.randint(1, 10))}
    wanted = frozenset().union(*sets.values())
    found = cover(wanted, sets, {})
    assert found.is_exact
    assert wanted <= frozenset().union(*(sets[name] for name in found.names))
    assert len(found.names) == fewest(wanted, sets) == found.at_least


def test_of_as_few_recipes_the_cheapest_are_taken() -> None:
    sets = {"dear": frozenset({1, 2, 3}), "cheap": frozenset({1, 2, 3})}
    assert cover(frozenset({1, 2}), sets, {"dear": 9.0, "cheap": 1.0}).names == ("cheap",)


def test_what_no_recipe_makes_is_named() -> None:
    assert cover(frozenset({1, 2}), {"a": frozenset({1})}, {}).uncovered == {2}


def test_a_large_choice_is_greedy_and_says_how_many_are_needed_at_least() -> None:
    rng = random.Random(1)
    sets = {f"r{n}": frozenset(rng.sample(range(400), 12)) for n in range(300)}
    wanted = frozenset().union(*sets.values())
    found = cover(wanted, sets, {})
    assert wanted <= frozenset().union(*(sets[name] for name in found.names))
    assert not found.is_exact
    assert 400 // 12 <= found.at_least <= len(found.names)


def need(key: str, nodes: int = 0) -> Need:
    return Need(key=key, kind="forward", text=key, nodes=nodes)


def test_an_unknown_cost_is_printed_as_unknown_and_never_as_zero() -> None:
    estimator = Estimator((), device="simulated")
    assert time_of(estimator.seconds([need("a")])) == "unknown"
    assert size_of(estimator.size_bytes([need("a")])) == "unknown"
    assert time_of(estimator.seconds([need("a"), need("b", 100)])) == "70 s (guessed by size), unknown for 1"


def test_a_measured_compile_and_a_recorded_size_count_before_a_guess() -> None:
    record = GraphRecord(
        key=GraphKey(graph="a", device="real", target="trn2"),
        model=ModelKey(name="Net"),
        kind="forward",
        compile_s=300.0,
        neff=Neff(digest="0" * 64, size_bytes=2_500_000_000, path="aa/bb/x.neff"),
    )
    estimator = Estimator([record], device="real")
    assert time_of(estimator.seconds([need("a", 10)])) == "5 min"
    assert size_of(estimator.size_bytes([need("a"), need("b")])) == "2.5 GB, unknown for 1"
    assert time_of(Estimator([record], device="simulated").seconds([need("a")])) == "unknown"


def test_the_time_by_the_clock_is_that_of_the_fullest_worker() -> None:
    assert makespan_s({"a": 5.0, "b": 4.0, "c": 3.0, "d": 3.0, "e": 3.0}, 2) == 10.0


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"--shard {text}: no part"):
        shard_of(text)


def test_recipes_whose_peaks_do_not_fit_together_do_not_run_together() -> None:
    memory = Memory(1000, 4, {"a": 500, "b": 500, "c": 300})
    assert memory.fits("a", (), {})
    assert not memory.fits("b", ("a",), {})
    assert memory.fits("c", ("a",), {})
    assert not memory.fits("c", ("a",), {"a": 800}), "what is held counts, where it is more than was reserved"
    assert not memory.fits("c", ("a",), {"": 200}), "workers that wait hold memory too"


def test_where_nothing_was_measured_the_first_recipe_runs_alone_and_then_the_largest_counts() -> None:
    memory = Memory(1000, 4, {})
    assert memory.fits("a", (), {})
    assert not memory.fits("b", ("a",), {})
    memory.learn("a", 300)
    assert memory.fits("c", ("b",), {})
    assert not memory.fits("d", ("b", "c", "e"), {})


def test_without_a_limit_that_was_asked_for_all_begin_at_once() -> None:
    memory = Memory(1000, 4, {}, is_strict=False)
    assert memory.fits("d", ("a", "b", "c"), {})


@pytest.mark.parametrize(
    ("wanted", "limit", "peaks", "slots"),
    [(0, 0, [], 8), (0, 1000, [400], 2), (3, 1000, [400], 3), (99, 0, [], 10), (0, 100, [400], 1)],
)
def test_as_many_run_at_once_as_processors_and_memory_carry(
    wanted: int, limit: int, peaks: list[int], slots: int
) -> None:
    assert slots_for(wanted, num_recipes=10, num_cpus=8, limit_bytes=limit, peaks=peaks) == slots
