"""Embeds and classifies with fixed shapes: padding to buckets, one compiled graph for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from shapeguard.buckets import pad_to_bucket
from shapeguard.run.batches import Batch
from shapeguard.run.generate import along


class Embedder(nn.Module):
    """A model with the pooling of its tokens, so that both are one graph."""

    def __init__(self, model: Any, *, pooling: str, normalize: bool) -> None:
        super().__init__()
        self.model = model
        self.pooling = pooling
        self.normalize = normalize

    def forward(self, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Give one vector a row; padding counts for nothing."""
        hidden = self.model(attention_mask=attention_mask, **inputs).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        if self.pooling == "mean":
            vector = (hidden * mask).sum(1) / mask.sum(1)
        elif self.pooling == "cls":
            vector = hidden[:, 0]
        else:
            # The last real token by a product, since its place differs from row to row.
            last = mask - nn.functional.pad(mask[:, 1:], (0, 0, 0, 1))
            vector = (hidden * last).sum(1)
        return nn.functional.normalize(vector, dim=-1) if self.normalize else vector


class Classifier(nn.Module):
    """A model with the softmax of its classes."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        """Give one number a class and row."""
        logits: Tensor = self.model(**inputs).logits
        return logits.float().softmax(-1) if logits.shape[-1] > 1 else logits.float()


class Encoder:
    """Runs a compiled module over batches of one shape a bucket."""

    def __init__(self, module: nn.Module, tokenizer: Any) -> None:
        self._device = next(module.parameters()).device
        self.longest = _longest(module)
        """The most tokens that the module takes; None where it does not say."""
        self._tokenizer = tokenizer
        self._forward = (
            torch.compile(module.eval(), backend="neuron") if self._device.type == "neuron" else module.eval()
        )

    @torch.no_grad()
    def run(self, encoded: Sequence[Mapping[str, Any]], batch: Batch) -> Tensor:
        """Give what the module says of each real row of a batch."""
        rows = [encoded[number] for number in batch.filled]
        texts = {"input_ids": [row["input_ids"] for row in rows], **along(rows)}
        # Encoders count their positions from the left, so padding stands on the right.
        inputs = pad_to_bucket(texts, [batch.bucket], tokenizer=self._tokenizer, side="right")
        moved = {name: value.to(self._device) for name, value in inputs.items()}
        found: Tensor = self._forward(**moved)
        return found.cpu()[: len(batch.rows)].float()


def _longest(module: nn.Module) -> int | None:
    """Positions that begin behind the padding's number, as RoBERTa's, are fewer than the configuration says."""
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding) and part.padding_idx is not None:
            return part.num_embeddings - part.padding_idx - 1
    return None
