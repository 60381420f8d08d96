"""Which inputs of a model run along the tokens, and what pads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {"label": "labels", "label_ids": "labels"}
"""How data sets call what models call something else; the collators of transformers rename these too."""
IGNORED = -100
"""The label that the losses of PyTorch and transformers leave out."""

POSITIONS = ("start_positions", "end_positions")
"""Labels that name a token; the losses of transformers leave out a place behind the last one."""

_ZERO = (
    "attention_mask", "position_ids", "token_type_ids", "global_attention_mask", "inputs_embeds", "bbox", "langs",
    "mm_token_type_ids", "completion_mask", "assistant_masks", "cross_attention_mask", "decoder_attention_mask",
    "decoder_position_ids", "decoder_inputs_embeds", "token_type_embeddings", "entity_ids", "visual_token_mask",
)  # fmt: skip
_FIXED = ("pixel_", "image_", "images", "video_", "input_features", "input_values", "audio_", "spatial_shapes")
TARGETS = ("labels", "decoder_input_ids", "decoder_attention_mask", "decoder_position_ids", "decoder_inputs_embeds")
"""Inputs on the side of the answer in an encoder-decoder model; their length may be another one."""


def pads(tokenizer: Any, pad_token_id: int | None) -> dict[str, int]:
    """Give the padding value of every input that is known to run along the tokens."""
    pad = _pad_token(tokenizer, pad_token_id)
    found = dict.fromkeys(_ZERO, 0)
    found |= {"input_ids": pad, "decoder_input_ids": pad, "labels": IGNORED, "special_tokens_mask": 1}
    found["token_type_ids"] = int(getattr(tokenizer, "pad_token_type_id", 0) or 0)
    for name in getattr(tokenizer, "model_input_names", None) or ():
        if not is_fixed(str(name)):
            found.setdefault(str(name), 0)
    return found


def _pad_token(tokenizer: Any, pad_token_id: int | None) -> int:
    if pad_token_id is not None:
        return int(pad_token_id)
    known = getattr(tokenizer, "pad_token_id", None)
    # The library `tokenizers` keeps it in the padding that was switched on.
    padding = getattr(tokenizer, "padding", None)
    if known is None and isinstance(padding, Mapping):
        known = padding.get("pad_id")
    if known is None and tokenizer is None:
        raise ValueError("give a tokenizer with a padding token, or pad_token_id")
    if known is None:
        raise ValueError(
            f"{type(tokenizer).__name__} has no padding token; set tokenizer.pad_token = tokenizer.eos_token, "
            "or give pad_token_id"
        )
    return int(known)


def is_fixed(name: str) -> bool:
    """Whether an input is known to have nothing to do with the number of tokens: images, sound."""
    return name.startswith(_FIXED)
