"""Pads prompts to a bucket before `generate()`, on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from shapeguard.buckets.keys import is_fixed, pads
from shapeguard.buckets.spec import Source, lengths_of, smallest


def pad_to_bucket(
    inputs: Any,
    buckets: Source,
    *,
    tokenizer: Any = None,
    pad_token_id: int | None = None,
    side: str = "left",
    truncate: bool = False,
) -> Any:
    """Give the tokenizer's output padded to the smallest bucket that holds it, with an attention mask.

    Tensors, or lists of token ids of different lengths, which are made one tensor. Padding that the
    tokenizer added is taken away first, whichever side it is on. `side="right"` is for encoders.
    `truncate` keeps the end of prompts that fit no bucket; otherwise they are an error.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', not {side!r}")
    values: Mapping[str, Any] = inputs if hasattr(inputs, "items") else {"input_ids": inputs}
    if "input_ids" not in values:
        raise ValueError(f"there are no input_ids, only {', '.join(map(str, values)) or 'nothing'}")
    padding = pads(tokenizer, pad_token_id)
    rows = _real(_matrices(values, padding, side))
    longest = max(len(row) for row in rows["input_ids"])
    empty = next((number for number, row in enumerate(rows["input_ids"]) if not len(row)), None)
    if empty is not None:
        raise ValueError(f"prompt {empty} has no tokens, and attention over nothing is not a number")
    sizes = lengths_of(buckets)
    bucket = smallest(sizes, longest)
    if bucket is None and not truncate:
        raise ValueError(
            f"a prompt of {longest} tokens fits no bucket, the largest is {sizes[-1]}; truncate=True keeps its end"
        )
    length = bucket or sizes[-1]
    done = {
        name: _matrix([row[-length:] for row in each], length, padding.get(name, 0), side)
        for name, each in rows.items()
    }
    if not hasattr(inputs, "items"):
        return done
    return _like(inputs, {**values, **done})


def _matrices(values: Mapping[str, Any], padding: Mapping[str, int], side: str) -> dict[str, Tensor]:
    """Everything that runs along the tokens as one tensor each, rows of one length."""
    rows = _rows(values["input_ids"])
    width = max(len(row) for row in rows)
    mask = values.get("attention_mask")
    masks = [torch.ones(len(row), dtype=torch.long) for row in rows] if mask is None else _rows(mask)
    found = {
        "input_ids": _matrix(rows, width, padding["input_ids"], side),
        "attention_mask": _matrix(masks, width, 0, side),
    }
    for name, value in values.items():
        if name not in found and name in padding and not is_fixed(name) and value is not None:
            found[name] = _matrix(_rows(value), width, padding[name], side)
    return found


def _real(matrices: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
    """The rows without the padding that the tokenizer put before or behind them."""
    for name, matrix in matrices.items():
        if len(matrix) != len(matrices["input_ids"]):
            raise ValueError(f"{name} has {len(matrix)} rows, input_ids {len(matrices['input_ids'])}")
    spans = [_span(mask) for mask in matrices["attention_mask"]]
    return {
        name: [row[start:end] for row, (start, end) in zip(matrix, spans, strict=True)]
        for name, matrix in matrices.items()
    }


def _span(mask: Tensor) -> tuple[int, int]:
    used = mask.nonzero().flatten().tolist()
    return (used[0], used[-1] + 1) if used else (0, 0)


def _rows(value: Any) -> list[Tensor]:
    """One tensor a row; a single row of token ids is a batch of one."""
    if isinstance(value, Tensor) and not value.is_cpu:
        raise ValueError(f"the inputs lie on {value.device}: pad on the CPU and leave them there for generate()")
    rows = list(value) if getattr(value, "ndim", 1) else []
    if not rows:
        raise ValueError("there are no prompts")
    if any(isinstance(row, str) for row in rows):
        raise ValueError("prompts are token ids, not texts: tokenize them first")
    if not isinstance(rows[0], (list, tuple)) and getattr(rows[0], "ndim", 0) == 0:
        return [torch.as_tensor(value)]
    # An empty prompt has no dtype of its own.
    return [torch.as_tensor(row) if len(row) else torch.zeros(0, dtype=torch.long) for row in rows]


def _matrix(rows: list[Tensor], length: int, value: int, side: str) -> Tensor:
    padded = []
    for row in rows:
        if len(row) > length:
            raise ValueError(f"an input of {len(row)} tokens stands beside input_ids of {length}")
        missing = row.new_full((length - len(row), *row.shape[1:]), value)
        padded.append(torch.cat([missing, row] if side == "left" else [row, missing]))
    return torch.stack(padded)


def _like(inputs: Any, values: dict[str, Any]) -> Any:
    """The same kind of mapping with new values: a BatchEncoding stays one."""
    if type(inputs) is dict:
        return values
    try:
        return type(inputs)(values)
    except TypeError:
        return values
