"""Finds models that run on the host while a Neuron device is there, and the line that put them there."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

import torch

from shapeguard.trace.recorder import Recorder


class Placement:
    """Remembers where models were made and moved, and looks at them when they run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._made: weakref.WeakKeyDictionary[torch.nn.Module, Any] = weakref.WeakKeyDictionary()
        self._moved: weakref.WeakKeyDictionary[torch.nn.Module, Any] = weakref.WeakKeyDictionary()
        self._asked: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._told: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()

    def watch(self, base: type) -> None:
        """Note where models of transformers' base class are made and moved."""
        plain_init, plain_to = base.__init__, base.to  # type: ignore[attr-defined, misc]

        @functools.wraps(plain_init)
        def __init__(module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            plain_init(module, *args, **kwargs)
            self._made.setdefault(module, self._recorder.site())

        @functools.wraps(plain_to)
        def to(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            before = _device(module)
            result = plain_to(module, *args, **kwargs)
            if before == "neuron" and _device(module) == "cpu":
                self._moved[module] = ("pipeline" if _is_in_pipeline() else "moved", self._recorder.site())
            return result

        plain_load = base.__dict__["from_pretrained"].__func__

        @functools.wraps(plain_load)
        def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
            model = plain_load(cls, *args, **kwargs)
            loaded = model[0] if isinstance(model, tuple) else model
            asked = kwargs.get("device_map")
            self._asked[loaded] = f'device_map="{asked}"' if isinstance(asked, str) else ""
            return model

        base.from_pretrained = classmethod(from_pretrained)  # type: ignore[attr-defined]
        base.__init__ = __init__  # type: ignore[misc]
        base.to = to  # type: ignore[attr-defined]

    def look(self, module: torch.nn.Module) -> None:
        """Look at a module whose forward begins."""
        model = getattr(module, "_orig_mod", module)
        if model in self._told or _device(model) != "cpu":
            return
        self._told.add(model)
        how, loaded = self._moved.get(model) or (self._asked.get(model) or "default", self._made.get(model))
        self._recorder.emit(
            {
                "type": "placement",
                "model": type(model).__name__,
                "device": "cpu",
                "how": how,
                "loaded": loaded,
                "site": self._recorder.site(),
            }
        )


def _device(module: torch.nn.Module) -> str:
    first = next(module.parameters(), None)
    return first.device.type if first is not None else ""


def _is_in_pipeline() -> bool:
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if "transformers/pipelines/" in frame.f_code.co_filename.replace("\\", "/"):
            return True
    return False
