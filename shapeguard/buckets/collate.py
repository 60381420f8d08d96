"""Pads the rows of a batch to a bucket, and the batch to its number of rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from shapeguard.buckets.keys import IGNORED, POSITIONS, TARGETS, is_fixed, pads
from shapeguard.buckets.rows import Row, read_row
from shapeguard.buckets.sampler import MarkedRow
from shapeguard.buckets.spec import Source, read_buckets, smallest


class BucketCollator:
    """A collate function whose batches have one of a few shapes: a bucket's length, and a fixed number of rows.

    A batch goes into the smallest bucket that holds its longest row. Missing rows, in the last batch of an epoch, are
    filled with masked ones: one attended padding token, so that no softmax is over nothing, and labels of -100.
    Padding is on the right, whatever the tokenizer says: only there it changes no position of a real token.
    """

    def __init__(
        self,
        tokenizer: Any = None,
        buckets: Source = (),
        *,
        batch_size: int | None = None,
        pad_token_id: int | None = None,
        pad: Mapping[str, int] | None = None,
        fixed: Collection[str] = (),
        padding_side: str = "right",
        target_length: int | None = None,
        causal_labels: bool = False,
        truncate: bool = False,
    ) -> None:
        """Take `buckets` as lengths, "128,512" or a `buckets.toml`, which may also say the batch sizes.

        `pad` gives the padding value of inputs of your own that run along the tokens, `fixed` names those that do not.
        `target_length` pads labels and decoder inputs to a length of their own; without it they share the bucket.
        `causal_labels` makes the labels of a language model from its inputs where rows bring none.
        `truncate` cuts rows that fit no bucket; otherwise they are an error.
        """
        if padding_side not in ("left", "right"):
            raise ValueError(f"padding_side must be 'left' or 'right', not {padding_side!r}")
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        known = read_buckets(buckets)
        self.buckets = tuple(bucket.length for bucket in known)
        self.batch_sizes = {bucket.length: batch_size or bucket.batch_size for bucket in known}
        self.pad = pads(tokenizer, pad_token_id) | dict(pad or {})
        self.fixed = frozenset(fixed)
        self.padding_side = padding_side
        self.target_length = target_length
        self.causal_labels = causal_labels
        self.truncate = truncate

    def __call__(self, rows: Sequence[Any]) -> Row:
        """Give the batch as tensors on the CPU."""
        marked = [row for row in rows if isinstance(row, MarkedRow)]
        if not rows:
            raise ValueError("a batch without rows cannot be padded; its data set is empty")
        real = [self._row(row) for row in rows if not _is_filler(row)]
        fillers = [self._row(row) for row in marked if row.is_filler]
        bucket = max((row.bucket for row in marked), default=0)
        bucket = max(bucket, self._bucket(real or fillers))
        batch = [self._padded(row, bucket) for row in real]
        model = batch[0] if batch else self._padded(fillers[0], bucket)
        wanted = self.batch_sizes[bucket] or len(rows)
        if len(batch) > wanted:
            raise ValueError(f"a batch of {len(batch)} rows is larger than the batch_size {wanted}")
        batch += [self._masked(model, bucket) for _ in range(wanted - len(batch))]
        return {name: _stack(name, [row.get(name) for row in batch]) for name in _names(batch)}

    def _row(self, row: Any) -> Row:
        found = read_row(row.row if isinstance(row, MarkedRow) else row, causal_labels=self.causal_labels)
        return {name: self._cut(name, value) for name, value in found.items()} if self.truncate else found

    def _cut(self, name: str, value: Tensor) -> Tensor:
        if not self._is_along(name, value):
            return value
        longest = self._target(name) or self.buckets[-1]
        for dim in _dims(name, value):
            value = value.narrow(dim, 0, min(longest, value.shape[dim]))
        return value

    def _bucket(self, rows: Sequence[Row]) -> int:
        """The smallest bucket for the longest row."""
        lengths = [self._length(row) for row in rows]
        bucket = smallest(self.buckets, max(lengths))
        if bucket is None:
            raise ValueError(
                f"a row of {max(lengths)} tokens fits no bucket, the largest is {self.buckets[-1]}; "
                "truncate=True cuts such rows"
            )
        return bucket

    def _length(self, row: Row) -> int:
        return max(
            (v.shape[0] for name, v in row.items() if self._is_along(name, v) and not self._target(name)), default=1
        )

    def _is_along(self, name: str, value: Tensor) -> bool:
        """Whether an input runs along the tokens; an unknown one is an error, since a guess would depend on the row."""
        is_vector = name == "labels" and value.is_floating_point()  # one number a class
        if value.dim() == 0 or is_vector or name in self.fixed or (is_fixed(name) and name not in self.pad):
            return False
        if name in self.pad:
            return True
        raise ValueError(
            f"does {name!r}, of shape {tuple(value.shape)}, run along the tokens? "
            f"Then give pad={{{name!r}: 0}}, otherwise fixed=({name!r},)"
        )

    def _target(self, name: str) -> int | None:
        return self.target_length if name in TARGETS else None

    def _padded(self, row: Row, bucket: int) -> Row:
        return {name: self._pad_one(name, value, bucket) for name, value in row.items()}

    def _pad_one(self, name: str, value: Tensor, bucket: int) -> Tensor:
        if not self._is_along(name, value):
            return value
        length = self._target(name) or bucket
        for dim in _dims(name, value):
            missing = length - value.shape[dim]
            if missing < 0:
                raise ValueError(f"{name}: {value.shape[dim]} tokens are more than {length}; truncate=True cuts them")
            shape = [*value.shape]
            shape[dim] = missing
            filling = value.new_full(shape, self.pad[name])
            value = torch.cat([value, filling] if self.padding_side == "right" else [filling, value], dim)
        return value

    def _masked(self, model: Row, bucket: int) -> Row:
        """Give a row like a padded one in which nothing counts."""
        return {name: self._mask_one(name, value, bucket) for name, value in model.items()}

    def _mask_one(self, name: str, value: Tensor, bucket: int) -> Tensor:
        if name.endswith(("label", "labels")):
            if value.is_floating_point():
                raise ValueError(
                    f"{name} are {value.dtype}, which no loss leaves out, so a short batch cannot be filled; "
                    "give BucketSampler drop_last=True"
                )
            return torch.full_like(value, IGNORED)
        if name in POSITIONS:
            return torch.full_like(value, bucket)
        if not self._is_along(name, value):
            return torch.zeros_like(value)
        masked = torch.full_like(value, self.pad[name])
        if name.endswith("attention_mask"):
            masked[..., 0 if self.padding_side == "right" else -1] = 1
        return masked


def _names(batch: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in batch for name in row))


def _stack(name: str, values: Sequence[Tensor | None]) -> Tensor:
    found = [value for value in values if value is not None]
    if len(found) < len(values):
        raise ValueError(f"{len(values) - len(found)} of {len(values)} rows have no {name!r}")
    shapes = {tuple(value.shape) for value in found}
    if len(shapes) > 1:
        raise ValueError(f"{name!r} has rows of different shapes: {', '.join(map(str, sorted(shapes)[:4]))}")
    return torch.stack(found)


def _is_filler(row: Any) -> bool:
    return isinstance(row, MarkedRow) and row.is_filler


def _dims(name: str, value: Tensor) -> tuple[int, ...]:
    """The dimensions that run along the tokens: both of a square mask."""
    is_square = name.endswith("attention_mask") and value.dim() >= 2
    return (value.dim() - 2, value.dim() - 1) if is_square else (0,)
