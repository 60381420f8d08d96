"""What a row costs in a model: a share for each token, and attention's for each pair of tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shapeguard.buckets.fit import Work
from shapeguard.core.errors import UsageError

_NAMES = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads"),
    "inner": ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "encoder_ffn_dim", "hidden_dim"),
}
"""Families of models call the same size differently."""


def work_of_model(path: str) -> Work:
    """Count multiplications of one forward pass from a `config.json` or its folder.

    Attention counts as a full square, which is what a graph of a fixed shape computes; the vocabulary's projection and
    what a family has of its own do not count.
    """
    config = _read(path)
    text = config.get("text_config")
    values: Mapping[str, Any] = text if isinstance(text, dict) else config
    hidden = _size(values, "hidden", path)
    layers = _size(values, "layers", path)
    heads = _size(values, "heads", path)
    width = _positive(values.get("head_dim") or values.get("d_kv")) or hidden // heads
    shared = _positive(values.get("num_key_value_heads")) or heads
    inner = _first(values, "inner") or 4 * hidden
    experts = _positive(values.get("num_experts_per_tok")) or 1
    attention = hidden * width * (2 * heads + 2 * shared)
    matrices = 3 if _is_gated(values) else 2
    return Work(linear=layers * (attention + experts * matrices * hidden * inner), quadratic=layers * 2 * heads * width)


def _is_gated(values: Mapping[str, Any]) -> bool:
    """Whether the feed-forward part has three matrices: the families with RMS norm, and T5's gated ones."""
    return "rms_norm_eps" in values or str(values.get("feed_forward_proj", "")).startswith("gated")


def _size(values: Mapping[str, Any], what: str, path: str) -> int:
    found = _first(values, what)
    if found is None:
        raise UsageError(
            f"{path}: no {_NAMES[what][0]} in the model's configuration",
            hint="give the config.json of a transformer, or leave out --model to count tokens only",
        )
    return found


def _first(values: Mapping[str, Any], what: str) -> int | None:
    return next((size for name in _NAMES[what] if (size := _positive(values.get(name)))), None)


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _read(path: str) -> Mapping[str, Any]:
    file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"cannot read {str(file)!r}: {error.strerror or error}", hint="give --model the folder of a model"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: this is no JSON: {error}", hint="give --model a config.json") from error
    if not isinstance(value, dict):
        raise UsageError(f"{file}: a configuration is a table, not {type(value).__name__}")
    return value
