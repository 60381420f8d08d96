"""The optimum: equal to trying everything, and never worse than the usual rules of thumb."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import pytest
from bucket_corpora import CORPORA, lengths

from shapeguard.buckets.fit import Fit, Limits, Work, fit
from shapeguard.buckets.plan import Planner
from shapeguard.core.errors import UsageError


def by_trying(lengths: Mapping[int, int], number: int, limits: Limits, work: Work) -> int | None:
    """The least work of all sets of aligned lengths of that number that hold every row, or None."""
    sizes = sorted({limits.aligned(length) for length in lengths})
    costs = []
    for chosen in combinations(sizes, number):
        if chosen[-1] != sizes[-1]:
            continue
        placed = [(length, min(size for size in chosen if size >= length)) for length in lengths]
        if limits.max_pad is None or all(size - length <= limits.max_pad for length, size in placed):
            costs.append(sum(work.of(size) * lengths[length] for length, size in placed))
    return min(costs, default=None)


def instance(chance: Random) -> tuple[Mapping[int, int], Limits, Work]:
    rows = {chance.randint(1, 40): chance.choice([1, 1, 2, 5, 100]) for _ in range(chance.randint(1, 9))}
    limits = Limits(align=chance.choice([1, 1, 2, 4, 8]), max_pad=chance.choice([None, None, 7, 10, 15, 20]))
    return rows, limits, Work(linear=chance.choice([1, 1, 3]), quadratic=chance.choice([0, 0, 1, 2]))


def test_ten_thousand_small_plans_equal_the_best_of_all_possible_ones() -> None:
    chance = Random(12)
    infeasible = 0
    for _ in range(10_000):
        rows, limits, work = instance(chance)
        planner = Planner(rows, limits=limits, work=work)
        for number in range(1, planner.most + 1):
            found = planner.fit(number)
            best = by_trying(rows, number, limits, work)
            infeasible += best is None
            assert (found.work if found else None) == best, (rows, number, limits, work)
            assert found is None or found == fit(rows, found.buckets, work)
    assert infeasible > 1000


def test_each_bucket_more_saves_no_more_than_the_one_before_it() -> None:
    chance = Random(7)
    for _ in range(2_000):
        rows, limits, work = instance(chance)
        costs = [found.work for found in Planner(rows, limits=limits, work=work).curve(20)]
        saved = [before - after for before, after in pairwise(costs)]
        assert all(first >= second for first, second in pairwise(saved)), (rows, limits, work)


def powers_of_two(longest: int, number: int) -> list[int]:
    return [1 << i for i in range(longest.bit_length() + 1)]


def multiples_of_64(longest: int, number: int) -> list[int]:
    return list(range(64, longest + 64, 64))


def exponential(longest: int, number: int) -> list[int]:
    return [round(longest ** ((i + 1) / number)) for i in range(number)]


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("rule", [powers_of_two, multiples_of_64, exponential])
@pytest.mark.parametrize("work", [Work(), Work(linear=4096, quadratic=1)], ids=["tokens", "attention"])
def test_no_rule_of_thumb_beats_the_plan_on_real_texts(name: str, rule, work: Work) -> None:  # type: ignore[no-untyped-def]
    rows = lengths(name)
    assert sum(rows.values()) > 50
    assert len(rows) > 40
    for number in (2, 4, 8, 16):
        usual = fit(rows, rule(max(rows), number), work)
        align = 64 if rule is multiples_of_64 else 1
        best = Planner(rows, limits=Limits(align=align), work=work).fit(in_use(usual))
        assert best is not None
        assert best.work <= usual.work
        assert not best.misfits


def in_use(fitted: Fit) -> int:
    assert not fitted.misfits
    return len(fitted.buckets) - len(fitted.unused)


def test_rows_longer_than_the_largest_bucket_are_left_out_and_told() -> None:
    found = Planner({10: 3, 100: 2, 130: 1}, limits=Limits(align=64, max_length=127)).fit(2)
    assert found is not None
    assert found.buckets == (64, 127)
    assert found.misfits == {130: 1}
    assert found.padded == 3 * 54 + 2 * 27


def test_plans_with_a_maximum_length_equal_the_best_of_all_possible_ones() -> None:
    chance = Random(21)
    for _ in range(1_000):
        rows, limits, work = instance(chance)
        limits = replace(limits, max_length=max(rows) - chance.randint(0, 3) if len(rows) > 1 else max(rows))
        fitting = {length: count for length, count in rows.items() if length <= (limits.max_length or 0)}
        if not fitting:
            continue
        planner = Planner(rows, limits=limits, work=work)
        for number in range(1, planner.most + 1):
            found = planner.fit(number)
            assert (found.work if found else None) == by_trying(fitting, number, limits, work), (rows, limits)


def test_an_empty_row_takes_the_smallest_bucket() -> None:
    found = Planner({0: 4, 9: 1}, limits=Limits(align=8)).fit(2)
    assert found is not None
    assert found.buckets == (8, 16)
    assert found.rows == (4, 1)


@pytest.mark.parametrize(
    ("rows", "limits", "message"),
    [
        ({}, Limits(), "there are no lengths to plan for; give a file with one length a line"),
        ({5: 0}, Limits(), "there are no lengths to plan for; give a file with one length a line"),
        ({-1: 2}, Limits(), "-1 is no length and no number of rows; lengths and counts start at 0"),
        (
            {200: 1, 300: 1},
            Limits(align=64, max_length=130),
            "every row is longer than 130: the shortest has 200 tokens; "
            "raise --max-length, or give --truncate if rows may be cut",
        ),
        (
            {5: 1, 60: 1},
            Limits(align=64, max_pad=20),
            "a row of 5 tokens gets 59 of padding in the smallest multiple of 64 that holds it, more than 20; "
            "raise --max-pad or lower --align",
        ),
        ({5: 1}, Limits(align=0), "the alignment 0 is not a positive number; give --align 1 for none"),
    ],
)
def test_lengths_that_cannot_be_planned_are_named(rows: Mapping[int, int], limits: Limits, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Planner(rows, limits=limits)
    assert str(caught.value) == message


def test_planning_imports_no_torch() -> None:
    code = "import sys, shapeguard.buckets.plan, shapeguard.cli.commands.plan; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
