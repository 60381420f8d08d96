"""A cause of a run, or of a difference from the lock, in one sentence."""

from __future__ import annotations

from shapeguard.lock.observe import PARAMETERS
from shapeguard.lock.values import LockedGraph
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


def other_program(old: LockedGraph, new: LockedGraph) -> str:
    """Say in what a graph differs from one of the lock that has the same inputs."""
    told = [_constants(old, new)] if old.constants != new.constants else []
    if old.dtypes != new.dtypes:
        gone, came = sorted({*old.dtypes} - {*new.dtypes}), sorted({*new.dtypes} - {*old.dtypes})
        told.append(_dtypes(" and ".join(gone), " and ".join(came)))
    if old.parameters and new.parameters and old.parameters != new.parameters:
        told.append(f"its parameters: {old.parameters} → {new.parameters}")
    if old.nodes != new.nodes:
        told.append(f"{old.nodes} → {new.nodes} operators")
    said = "; ".join(part for part in told if part)
    if said:
        return f"the same inputs, another program: {said}, against the lock"
    return f"the same inputs and {new.nodes} operators, of which one or a setting of one is another, against the lock"


def _dtypes(gone: str, came: str) -> str:
    if gone and came:
        return f"dtype {gone} → {came} in it"
    return f"dtype {came} is new in it" if came else f"dtype {gone} is no longer in it"


def _constants(old: LockedGraph, new: LockedGraph) -> str:
    """Say which baked-in value differs: `scale: 1 → 2`, `autocast: none → bfloat16`.

    Values of modules that only one of the two has are no reason: they say that the model is built of other parts.
    """
    before = dict(row.partition("=")[::2] for row in old.constants)
    after = dict(row.partition("=")[::2] for row in new.constants)
    names = [
        name
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
        and ((name in before and name in after) or not any(mark in name for mark in PARAMETERS))
    ]
    told = [f"{name}: {before.get(name, 'none')} → {after.get(name, 'none')}" for name in names[:2]]
    return ", ".join(told) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
