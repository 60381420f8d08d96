"""Batches of one bucket each, in a random but repeatable order, on one process or on many."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from torch.utils.data import Dataset, Sampler

from shapeguard.buckets.spec import Source, read_buckets, smallest
from shapeguard.buckets.steps import Step, cut


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRow:
    """A row, and what the collator cannot see from it."""

    row: Any
    bucket: int
    """The bucket of the batch; that of another rank's row where this rank has only shorter ones."""
    is_filler: bool
    """Stands for no row: the collator masks it."""


class MarkedIndex:
    """The number of a row in a batch whose bucket cannot be seen from its rows; only `BucketRows` looks it up."""

    __slots__ = ("bucket", "index", "is_filler")

    def __init__(self, index: int, *, bucket: int, is_filler: bool) -> None:
        self.index = index
        self.bucket = bucket
        self.is_filler = is_filler

    def __index__(self) -> int:
        raise TypeError(
            "on several ranks a batch can be padded to the bucket of another rank's row: "
            "give the loader BucketRows(dataset), from shapeguard.buckets"
        )

    # `datasets` reads numbers of rows this way, and would give rows without their marks.
    __int__ = __index__

    def __eq__(self, other: object) -> bool:
        return bool(other == self.index)

    def __hash__(self) -> int:
        return hash(self.index)

    def __lt__(self, other: Any) -> bool:
        return bool(other > self.index)

    def __gt__(self, other: Any) -> bool:
        return bool(other < self.index)

    def __repr__(self) -> str:
        return f"row {self.index} for BucketRows, bucket {self.bucket}{', masked' if self.is_filler else ''}"


class BucketRows(Dataset[Any]):
    """A data set whose rows carry what `BucketSampler` knows of their batch; needed on several ranks."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, MarkedIndex):
            return self.dataset[index]
        return MarkedRow(row=self.dataset[index.index], bucket=index.bucket, is_filler=index.is_filler)


class BucketSampler(Sampler[list[Any]]):
    """Gives `DataLoader(batch_sampler=…)` batches whose rows share a bucket.

    Each row stands in one batch an epoch, on one rank. A bucket's last batch is short, and `BucketCollator` with the
    same `batch_size` fills it with masked rows. All ranks have the same number of batches, and those of a step are of
    one bucket; an epoch begins with one of each. The order depends on `seed` and the epoch only: call `set_epoch`, as
    with torch's `DistributedSampler`.
    """

    def __init__(
        self,
        lengths: Iterable[int],
        buckets: Source,
        *,
        batch_size: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        truncate: bool = False,
    ) -> None:
        """Take the number of tokens of each row; `batch_size` counts the rows of one rank.

        Without `rank` and `world_size` those of `torchrun` hold: RANK and WORLD_SIZE.
        """
        if (rank is None) != (world_size is None):
            raise ValueError("give rank and world_size together, or neither")
        self.world_size = int(os.environ.get("WORLD_SIZE", "1")) if world_size is None else world_size
        self.rank = int(os.environ.get("RANK", "0")) if rank is None else rank
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} is not one of {self.world_size} ranks")
        known = read_buckets(buckets)
        self._sizes = tuple(bucket.length for bucket in known)
        self.batch_sizes = {bucket.length: _batch_size(batch_size or bucket.batch_size) for bucket in known}
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self._rows = self._grouped(lengths, truncate=truncate)
        self._epoch = 0
        self._num_steps = len(self._steps(self._rows))

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes: each has an order of its own."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self._num_steps

    def __iter__(self) -> Iterator[list[Any]]:
        chance = Random(f"{self.seed}/{self._epoch}")
        rows = self._rows
        if self.shuffle:
            rows = {bucket: chance.sample(each, len(each)) for bucket, each in rows.items()}
        steps = self._steps(rows)
        if self.shuffle:
            chance.shuffle(steps)
        for step in self._buckets_first(steps):
            yield self._batch(step)

    def _buckets_first(self, steps: Sequence[Step]) -> list[Step]:
        """Put one step of each bucket in front, the largest first.

        So an epoch's first steps show what must compile and what does not fit into memory; and a loader without
        `BucketRows` fails there instead of in the middle, since a step that needs it is preferred.
        """
        ordered = sorted(steps, key=lambda step: not self._is_marked(step))
        first = {step.bucket: step for step in reversed(ordered)}
        leading = [first[bucket] for bucket in sorted(first, reverse=True)]
        return leading + [step for step in steps if first[step.bucket] is not step]

    def _steps(self, rows: Mapping[int, Sequence[int]]) -> list[Step]:
        steps = cut(rows, self.batch_sizes, world_size=self.world_size, move=not self.drop_last)
        return [step for step in steps if not step.is_short] if self.drop_last else steps

    def _is_marked(self, step: Step) -> bool:
        return self.world_size > 1 and step.is_short

    def _batch(self, step: Step) -> list[Any]:
        own = step.rows[self.rank]
        if not self._is_marked(step):
            return list(own)
        if own:
            return [MarkedIndex(index, bucket=step.bucket, is_filler=False) for index in own]
        return [MarkedIndex(step.rows[0][0], bucket=step.bucket, is_filler=True)]

    def _grouped(self, lengths: Iterable[int], *, truncate: bool) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {size: [] for size in self._sizes}
        for index, each in enumerate(lengths):
            length = operator.index(each)
            bucket = smallest(self._sizes, min(length, self._sizes[-1]) if truncate else length)
            if bucket is None or length < 0:
                raise ValueError(
                    f"row {index} has {length} tokens and fits no bucket, the largest is {self._sizes[-1]}; "
                    "truncate=True, in the collator too, cuts such rows"
                )
            groups[bucket].append(index)
        if not any(groups.values()):
            raise ValueError("there are no rows: lengths is empty")
        return groups


def _batch_size(value: int | None) -> int:
    if value is None:
        raise ValueError("give batch_size: the buckets do not say how many rows a batch has")
    if value < 1:
        raise ValueError(f"batch_size must be at least 1, not {value}")
    return value
