"""Buckets: which lengths to compile for, and padding to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapeguard.buckets.collate import BucketCollator
    from shapeguard.buckets.prompts import pad_to_bucket
    from shapeguard.buckets.sampler import BucketRows, BucketSampler

# Resolved on first use: planning never imports torch, and these do.
_PUBLIC = {
    "BucketCollator": "collate",
    "BucketRows": "sampler",
    "BucketSampler": "sampler",
    "pad_to_bucket": "prompts",
}

__all__ = ["BucketCollator", "BucketRows", "BucketSampler", "pad_to_bucket"]


def __getattr__(name: str) -> object:
    """Give a public name from the module that owns it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'shapeguard.buckets' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"shapeguard.buckets.{_PUBLIC[name]}"), name)
