"""Cuts an epoch into steps: in each, all ranks have a batch of one bucket, and each rank a row of its own if it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One batch on every rank."""

    bucket: int
    rows: tuple[tuple[int, ...], ...]
    """The rows of each rank; an empty batch where there are fewer rows left than ranks."""
    is_short: bool
    """Some rank has fewer rows than its batch holds, or rows of a smaller bucket beside them."""


def cut(
    rows: Mapping[int, Sequence[int]], batch_sizes: Mapping[int, int], *, world_size: int, borrow: bool = True
) -> list[Step]:
    """Cut the rows of each bucket, in their order, into steps; every row stands in exactly one.

    The last step of a bucket is short. Where it has fewer rows than there are ranks, it takes rows of smaller buckets,
    which fit as well: a rank without any row would have a loss over nothing. `borrow=False` leaves them where they are.
    """
    left = {bucket: list(each) for bucket, each in rows.items()}
    order = sorted(left, reverse=True)
    steps = []
    for place, bucket in enumerate(order):
        own = len(left[bucket])
        if not own:
            continue
        lacking = _lacking(own, batch_sizes[bucket], world_size) if borrow else 0
        for smaller in order[place + 1 :]:
            taken = min(lacking, len(left[smaller]))
            left[bucket] += left[smaller][len(left[smaller]) - taken :]
            del left[smaller][len(left[smaller]) - taken :]
            lacking -= taken
        steps += _steps(bucket, left[bucket], batch_sizes[bucket], world_size=world_size, own=own)
    return steps


def _lacking(num_rows: int, batch_size: int, world_size: int) -> int:
    """How many rows more give each rank one in every step."""
    num_steps = -(-num_rows // (batch_size * world_size))
    return max(0, num_steps * world_size - num_rows)


def _steps(bucket: int, rows: Sequence[int], batch_size: int, *, world_size: int, own: int) -> list[Step]:
    """Deal the rows out, so that ranks differ by at most one row in a step."""
    full = batch_size * world_size
    num_steps = -(-len(rows) // full)
    sizes = [full] * num_steps
    sizes[-1] = len(rows) - full * (num_steps - 1)
    if num_steps > 1 and sizes[-1] < world_size:
        # The last full step gives rows away, so that every rank of the last one has some.
        given = min(world_size - sizes[-1], max(0, full - world_size))
        sizes[-2] -= given
        sizes[-1] += given
    steps = []
    start = 0
    for size in sizes:
        part = rows[start : start + size]
        dealt = tuple(tuple(part[rank::world_size]) for rank in range(world_size))
        steps.append(Step(bucket=bucket, rows=dealt, is_short=size < full or start + size > own))
        start += size
    return steps
