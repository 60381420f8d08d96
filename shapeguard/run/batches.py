"""Cuts rows into batches of one bucket each, and brings their results back into order. Never imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shapeguard.buckets.spec import smallest
from shapeguard.core.errors import UsageError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows that run together."""

    bucket: int
    rows: tuple[int, ...]
    """Numbers of the rows."""
    size: int
    """Rows that the batch has on the device; the last real row stands for those that are missing."""

    @property
    def filled(self) -> tuple[int, ...]:
        """The rows with the repeated ones, whose results nobody sees."""
        return self.rows + (self.rows[-1],) * (self.size - len(self.rows))


def cut(lengths: Sequence[int], buckets: Sequence[int], batch_size: int) -> list[Batch]:
    """Put each row into its bucket and fill batches; only the last one of a bucket is short.

    One batch of each bucket comes first, the largest first, so that everything compiles at the start.
    """
    groups: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        bucket = smallest(buckets, length)
        assert bucket is not None, "rows that fit no bucket were refused or cut"
        groups.setdefault(bucket, []).append(row)
    first, rest = [], []
    for bucket in sorted(groups, reverse=True):
        rows = groups[bucket]
        parts = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        batches = [Batch(bucket=bucket, rows=tuple(part), size=batch_size) for part in parts]
        first.append(batches[0])
        rest += batches[1:]
    return first + sorted(rest, key=lambda batch: batch.rows[0])


def check_lengths(lengths: Sequence[int], wheres: Sequence[str], buckets: Sequence[int], *, can_cut: bool) -> list[int]:
    """Give the lengths as they are; one that fits no bucket is an error that names its place."""
    longest = buckets[-1]
    way_out = ", or --truncate" if can_cut else ""
    for length, where in zip(lengths, wheres, strict=True):
        if length > longest:
            raise UsageError(
                f"{where}: {length} tokens fit no bucket, the largest is {longest}",
                hint=f"give a larger one with --buckets{way_out}",
            )
        if length < 1:
            raise UsageError(f"{where}: there are no tokens in it", hint="leave it out, or give it a word")
    return list(lengths)


class InOrder(Generic[Result]):
    """Hands results on in the order of their numbers, each as soon as all before it are there."""

    def __init__(self, write: Callable[[Result], None]) -> None:
        self._write = write
        self._next = 0
        self._waiting: dict[int, Result] = {}

    def put(self, number: int, result: Result) -> None:
        """Take a result, and hand on what is complete."""
        self._waiting[number] = result
        while self._next in self._waiting:
            self._write(self._waiting.pop(self._next))
            self._next += 1
