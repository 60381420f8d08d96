"""Reads a row of a data set, whatever it is, into tensors by the names that models use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from shapeguard.buckets.keys import IGNORED, NAMES

Row = dict[str, Tensor]


def read_row(row: Any, *, causal_labels: bool) -> Row:
    """Read one row: a mapping, an encoding, or token ids alone; texts and missing values are left out."""
    values = _mapping(row)
    named = {NAMES.get(name, name): value for name, value in values.items() if _is_numeric(value)}
    found = {name: _tensor(name, value) for name, value in named.items()}
    if not found:
        raise ValueError(f"a row holds no numbers, only {', '.join(map(str, values)) or 'nothing'}: tokenize it")
    ids = found.get("input_ids")
    if ids is not None and ids.dim() != 1:
        raise ValueError(
            f"input_ids of a row have the shape {tuple(ids.shape)}: tokenize rows one by one, without return_tensors"
        )
    if "attention_mask" not in found and (ids is not None or "inputs_embeds" in found):
        length = len(ids if ids is not None else found["inputs_embeds"])
        found["attention_mask"] = torch.ones(length, dtype=torch.long)
    if causal_labels and "labels" not in found and ids is not None:
        found["labels"] = ids.where(_attended(found["attention_mask"]), IGNORED)
    return found


def _attended(mask: Tensor) -> Tensor:
    """Which tokens are real: of a square mask, those that anything attends to."""
    return mask != 0 if mask.dim() == 1 else (mask != 0).flatten(0, -2).any(0)


def _mapping(row: Any) -> Mapping[str, Any]:
    if hasattr(row, "items"):
        return row  # type: ignore[no-any-return]
    if hasattr(row, "ids") and hasattr(row, "attention_mask"):  # an Encoding of the library `tokenizers`
        return {"input_ids": row.ids, "attention_mask": row.attention_mask}
    return {"input_ids": row}


def _is_numeric(value: Any) -> bool:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value is not None and not isinstance(value, (str, bytes, dict))


def _tensor(name: str, value: Any) -> Tensor:
    try:
        tensor = value.detach() if isinstance(value, Tensor) else torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} of a row cannot become a tensor: {error}") from error
    if not tensor.is_cpu:
        raise ValueError(f"{name} lies on {tensor.device}: pad on the CPU, each length there would be one more compile")
    # An empty list has no dtype of its own; and labels must hold -100.
    if not tensor.numel() or (name.endswith(("label", "labels")) and not tensor.is_floating_point()):
        return tensor if tensor.is_floating_point() and isinstance(value, Tensor) else tensor.long()
    return tensor
