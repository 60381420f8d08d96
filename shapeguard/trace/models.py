"""Tells when a library defines its base class of models: no import is hooked, no library is imported for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_WAITING: dict[str, list[Callable[[type], None]]] = {}


def when_defined(name: str, callback: Callable[[type], None]) -> None:
    """Call `callback` with transformers' class of that name, as soon as it is defined.

    `torch.nn.Module` learns of its subclasses by `__init_subclass__`. Wrapping methods of `Module` itself would reach
    into compiled code, where Dynamo treats modules in a way of its own.
    """
    if not _WAITING:
        hook: Any = _on_subclass
        torch.nn.Module.__init_subclass__ = classmethod(hook)  # type: ignore[assignment]
    _WAITING.setdefault(name, []).append(callback)


def _on_subclass(cls: type, **kwargs: Any) -> None:
    super(torch.nn.Module, cls).__init_subclass__(**kwargs)  # type: ignore[misc]
    if cls.__name__ in _WAITING and cls.__module__ == "transformers.modeling_utils":
        # The body of the class is whole, but its decorators have not run: wrap what the body defines.
        for callback in _WAITING[cls.__name__]:
            callback(cls)
