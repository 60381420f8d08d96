"""Random operators that a compiled backward runs again: torch saves the generator's state and gives it back.

Its operators for that take a list of devices that Neuron is not on. Numbers are drawn on the host there (facts 1.3), so
the state is that of the host's generator, whatever the inner side is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def replacement(target: Any) -> Callable[..., Any] | None:
    """Give what stands for one of these operators on inner tensors; None for any other."""
    name = target.name() if isinstance(target, torch._ops.HigherOrderOperator) else ""
    return _REPLACEMENTS.get(name)


def _saving(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return torch.get_rng_state(), op(*args, **kwargs)


def _with_state(state: torch.Tensor, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    before = torch.get_rng_state()
    if not state.is_meta:
        torch.set_rng_state(state)
    try:
        return op(*args, **kwargs)
    finally:
        torch.set_rng_state(before)


_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "run_and_save_rng_state": _saving,
    "run_with_rng_state": _with_state,
}
