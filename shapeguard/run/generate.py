"""Generates texts with fixed shapes: left padding to buckets, a static cache of one length, inputs on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from shapeguard.buckets import pad_to_bucket
from shapeguard.buckets.keys import is_fixed
from shapeguard.run.batches import Batch
from shapeguard.run.settings import Infer


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A model, and what all its calls of `generate()` have in common."""

    model: Any
    tokenizer: Any
    buckets: tuple[int, ...]
    settings: Infer

    def run(self, encoded: Sequence[Mapping[str, Any]], batch: Batch, streamer: Any = None) -> list[dict[str, Any]]:
        """Generate for one batch and give a result for each of its real rows."""
        rows = [encoded[number] for number in batch.filled]
        prompts = {"input_ids": [row["input_ids"] for row in rows], **along(rows)}
        inputs = pad_to_bucket(prompts, [batch.bucket], tokenizer=self.tokenizer)
        sequences = self.model.generate(**inputs, **self._images(rows), **self._fixed(), streamer=streamer)
        new = sequences[:, batch.bucket :].cpu()
        return [self._result(row.tolist()) for row in new[: len(batch.rows)]]

    def _fixed(self) -> dict[str, Any]:
        """What makes all calls one graph: the cache has room for the largest bucket and the whole budget."""
        settings = self.settings
        budget = settings.max_new_tokens
        fixed = {
            "max_new_tokens": budget,
            "cache_implementation": "static",
            "max_cache_len": self.buckets[-1] + budget,
            "pad_token_id": self.tokenizer.pad_token_id,
            "do_sample": settings.do_sample,
            "num_beams": 1,
        }
        if settings.do_sample:
            fixed |= {"temperature": settings.temperature, "top_k": settings.top_k, "top_p": settings.top_p}
        if self.model.device.type == "cpu":
            fixed["disable_compile"] = True
        return fixed

    def _images(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Pixel values belong on the device, unlike token ids, which `generate()` moves itself."""
        names = [name for name in rows[0] if is_fixed(name)]
        joined = {name: torch.cat([row[name] for row in rows]) for name in names}
        return {name: self._placed(value) for name, value in joined.items()}

    def _placed(self, value: Tensor) -> Tensor:
        return value.to(self.model.device, self.model.dtype if value.is_floating_point() else None)

    def _result(self, ids: list[int]) -> dict[str, Any]:
        ends = _ends(self.model.generation_config.eos_token_id)
        length = next((place + 1 for place, token in enumerate(ids) if token in ends), len(ids))
        text = self.tokenizer.decode(ids[:length], skip_special_tokens=True)
        is_ended = length > 0 and ids[length - 1] in ends
        return {"text": text, "tokens": length, "finish": "stop" if is_ended else "length"}


def along(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Give the inputs beside the token ids that run along them."""
    names = [name for name in rows[0] if name != "input_ids" and not is_fixed(name)]
    return {name: [row[name] for row in rows] for name in names}


def _ends(value: int | Sequence[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


class Streamer:
    """Hands on the tokens of a batch as they are generated; `generate()` calls it with one token a row."""

    def __init__(self, tokenizer: Any, numbers: Sequence[int], write: Any) -> None:
        self._tokenizer = tokenizer
        self._numbers = numbers
        self._write = write
        self._ids: list[list[int]] = [[] for _ in numbers]
        self._shown = [""] * len(numbers)
        self._is_prompt = True

    def put(self, tokens: Tensor) -> None:
        """Take the prompt first, then a token for each row."""
        if self._is_prompt:
            self._is_prompt = False
            return
        for place, token in enumerate(tokens.flatten().tolist()[: len(self._numbers)]):
            self._ids[place].append(token)
            text = self._tokenizer.decode(self._ids[place], skip_special_tokens=True)
            # A character of several tokens is shown when it is whole.
            if text.startswith(self._shown[place]) and len(text) > len(self._shown[place]) and text[-1] != "\ufffd":
                self._write(self._numbers[place], text[len(self._shown[place]) :])
                self._shown[place] = text

    def end(self) -> None:
        """Nothing is held back."""
