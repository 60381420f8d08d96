"""What buckets do to lengths: which row goes where, and what padding costs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a row costs at a length: `linear` for each token and `quadratic` for each pair of tokens."""

    linear: int = 1
    quadratic: int = 0

    def of(self, length: int) -> int:
        """Give the work of one row."""
        return length * (self.linear + self.quadratic * length)


TOKENS = Work()
"""Counts tokens alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a bucket may be."""

    align: int = 1
    """Buckets are multiples of it; `max_length` itself may be one too."""
    max_length: int | None = None
    """No bucket is longer; rows that are fit none."""
    max_pad: int | None = None
    """No row gets more padding tokens than this."""

    @property
    def cut_at(self) -> int | None:
        """The length that longer rows are cut to: a multiple where there is one."""
        return None if self.max_length is None else self.max_length // self.align * self.align or self.max_length

    def aligned(self, length: int) -> int:
        """Give the smallest bucket that holds the length; an empty row takes one as well."""
        multiple = max(1, -(-length // self.align)) * self.align
        # No row that is short enough is left out only because the longest bucket is no multiple.
        return multiple if self.max_length is None else min(multiple, self.max_length)


ANY_LENGTH = Limits()
"""Every length may be a bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What some buckets do to some lengths."""

    buckets: tuple[int, ...]
    rows: tuple[int, ...]
    """How many rows go into each bucket."""
    misfits: Mapping[int, int]
    """Lengths that fit no bucket, with their rows; they count nowhere else."""
    real_tokens: int
    tokens: int
    """Real tokens and padding."""
    real_work: int
    work: int

    @property
    def padded(self) -> int:
        """Padding tokens."""
        return self.tokens - self.real_tokens

    @property
    def padding_share(self) -> float:
        """Padding among all tokens."""
        return self.padded / self.tokens if self.tokens else 0.0

    @property
    def waste(self) -> float:
        """The share of the work that is spent on padding; with the plain work the same as `padding_share`."""
        return (self.work - self.real_work) / self.work if self.work else 0.0

    @property
    def unused(self) -> tuple[int, ...]:
        """Buckets that hold no row."""
        return tuple(bucket for bucket, rows in zip(self.buckets, self.rows, strict=True) if not rows)


def fit(
    lengths: Mapping[int, int], buckets: Sequence[int], work: Work = TOKENS, *, real_tokens: int | None = None
) -> Fit:
    """Put every row into the smallest bucket that holds it; `real_tokens` as with `Planner`."""
    sizes = sorted(set(buckets))
    rows = [0] * len(sizes)
    misfits = {}
    placed = {}
    for length, count in sorted(lengths.items()):
        index = bisect_left(sizes, length)
        if index == len(sizes):
            misfits[length] = count
            continue
        rows[index] += count
        placed[length] = count
    tokens, real_work = real(placed, work, None if misfits else real_tokens)
    return Fit(
        buckets=tuple(sizes),
        rows=tuple(rows),
        misfits=misfits,
        real_tokens=tokens,
        tokens=sum(size * count for size, count in zip(sizes, rows, strict=True)),
        real_work=real_work,
        work=sum(work.of(size) * count for size, count in zip(sizes, rows, strict=True)),
    )


def real(lengths: Mapping[int, int], work: Work, known: int | None) -> tuple[int, int]:
    """Give the tokens that are not padding, and the work for them: by the mean where only their sum is known."""
    tokens = sum(length * count for length, count in lengths.items())
    whole = sum(work.of(length) * count for length, count in lengths.items())
    if known is None or not tokens:
        return tokens, whole
    return known, whole * known // tokens
