"""A cause of a run in one sentence."""

from __future__ import annotations

from shapeguard.runs.causes import Cause
from shapeguard.runs.series import short


def what_changed(cause: Cause) -> str:
    """Say what changed: `input_ids dim 0: 4, then 2 in the last batch of each epoch`."""
    dim = f" dim {cause.dim}" if cause.dim is not None else ""
    values = short(cause.values)
    if not values or cause.pattern.startswith(f"{cause.values[0]}, then"):
        return f"{cause.input}{dim}: {cause.pattern}".rstrip(": ")
    return f"{cause.input}{dim} = {values}" + (f": {cause.pattern}" if cause.pattern else "")


def what_to_do(cause: Cause) -> str:
    """Give the advice with the rules that find such code."""
    return f"{cause.advice} [{', '.join(cause.rules)}]" if cause.rules else cause.advice
