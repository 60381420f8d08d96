"""What a program may call while it is traced; untraced, these do nothing."""

from __future__ import annotations

from collections.abc import Callable

_ON_STEP: list[Callable[[], None]] = []
"""Set by the traced process; a list, so that `from shapeguard import step` before the trace starts works too."""


def step() -> None:
    """Mark the beginning of a step by hand; from then on steps are no longer found by themselves."""
    for callback in _ON_STEP:
        callback()


def follow(callback: Callable[[], None]) -> None:
    """Let the tracer of this process know of marked steps."""
    _ON_STEP[:] = [callback]
