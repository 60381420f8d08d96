"""`--stub-weights`: `from_pretrained` builds the model from its configuration and neither reads nor fetches weights."""

from __future__ import annotations


def stub() -> None:
    """Placeholder until the loader is looked at."""
