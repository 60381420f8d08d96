"""Cuts an epoch into steps: in each, all ranks have a batch of one bucket, and each rank a row of its own if it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One batch on every rank."""

    bucket: int
    rows: tuple[tuple[int, ...], ...]
    """The rows of each rank; an empty batch where there are fewer rows left than ranks."""
    is_short: bool
    """Some rank has fewer rows than its batch holds, or rows of a smaller bucket beside them."""


def cut(
    rows: Mapping[int, Sequence[int]], batch_sizes: Mapping[int, int], *, world_size: int, move: bool = True
) -> list[Step]:
    """Cut the rows of each bucket, in their order, into steps; every row stands in exactly one.

    The last step of a bucket is short. Where that would leave a rank without any row, whose loss would be over nothing,
    rows move to a larger bucket, which holds them as well; `move=False` leaves them where they are.
    """
    dealt = {bucket: list(each) for bucket, each in rows.items() if each}
    own = {bucket: len(each) for bucket, each in dealt.items()}
    if move:
        _move(dealt, batch_sizes, world_size)
    steps = []
    for bucket in sorted(dealt, reverse=True):
        # What came from smaller buckets stands at the end.
        num_own = min(own[bucket], len(dealt[bucket]))
        sizes = _sizes(len(dealt[bucket]), batch_sizes[bucket], world_size, level=move)
        full = batch_sizes[bucket] * world_size
        steps += _steps(bucket, dealt[bucket], sizes, world_size=world_size, full=full, own=num_own)
    return steps


def _move(rows: dict[int, list[int]], batch_sizes: Mapping[int, int], world_size: int) -> None:
    """Move rows upwards until every bucket has enough for all ranks, where that is possible."""
    order = sorted(rows)
    for smaller, larger in pairwise(order):
        number = len(rows[smaller])
        if not _is_enough(number, batch_sizes[smaller], world_size):
            _take(rows, smaller, larger, number % (batch_sizes[smaller] * world_size))
    largest = order[-1]
    for smaller in reversed(order[:-1]):
        lacking = _lacking(len(rows[largest]), batch_sizes[largest], world_size)
        number = len(rows[smaller])
        if not lacking:
            break
        if number >= lacking and _is_enough(number - lacking, batch_sizes[smaller], world_size):
            _take(rows, smaller, largest, lacking)
        elif number < 2 * world_size:
            _take(rows, smaller, largest, number)


def _take(rows: dict[int, list[int]], smaller: int, larger: int, number: int) -> None:
    start = len(rows[smaller]) - number
    rows[larger] += rows[smaller][start:]
    del rows[smaller][start:]


def _lacking(num_rows: int, batch_size: int, world_size: int) -> int:
    """How many rows more would give each rank one in every step."""
    num_steps = -(-num_rows // (batch_size * world_size))
    return max(0, num_steps * world_size - num_rows)


def _is_enough(num_rows: int, batch_size: int, world_size: int) -> bool:
    return _lacking(num_rows, batch_size, world_size) == 0


def _sizes(num_rows: int, batch_size: int, world_size: int, *, level: bool) -> list[int]:
    """Give how many rows each step has, all ranks together; the last one is short.

    With `level` the last full step gives rows away, so that every rank of the last one has some; without it, full steps
    stay full, for a caller that drops the short one.
    """
    full = batch_size * world_size
    num_steps = -(-num_rows // full)
    sizes = [full] * num_steps
    if not sizes:
        return []
    sizes[-1] = num_rows - full * (num_steps - 1)
    if level and num_steps > 1 and sizes[-1] < world_size:
        given = min(world_size - sizes[-1], max(0, full - world_size))
        sizes[-2] -= given
        sizes[-1] += given
    return sizes


def _steps(
    bucket: int, rows: Sequence[int], sizes: Sequence[int], *, world_size: int, full: int, own: int
) -> list[Step]:
    """Deal the rows out, so that ranks differ by at most one row in a step."""
    steps = []
    start = 0
    for size in sizes:
        part = rows[start : start + size]
        dealt = tuple(tuple(part[rank::world_size]) for rank in range(world_size))
        steps.append(Step(bucket=bucket, rows=dealt, is_short=size < full or start + size > own))
        start += size
    return steps
