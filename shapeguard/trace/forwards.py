"""Writes down the shapes that top-level forwards get: ranks that compile no region are compared by them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from shapeguard.trace.recorder import Recorder


class Forwards:
    """Notes each new set of input shapes of each model."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._seen: set[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]] = set()

    def note(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note a forward that begins."""
        named = {**{str(index): value for index, value in enumerate(args)}, **kwargs}
        found = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
        if not any(value.device.type == "neuron" for value in found.values()):
            return
        model = _plain(module)
        key = (type(model).__name__, tuple((name, tuple(map(int, value.shape))) for name, value in found.items()))
        if key not in self._seen:
            self._seen.add(key)
            self._write(key[0], {_name(model, name): list(shape) for name, shape in key[1]})

    def _write(self, model: str, shapes: dict[str, list[int]]) -> None:
        event = {"type": "forward", "model": model, "shapes": shapes, "site": self._recorder.site()}
        owners = [owner for owner in self._recorder.owners if owner["role"] in ("collate", "loader")]
        self._recorder.emit({**event, "owners": owners} if owners else event)


def _plain(module: torch.nn.Module) -> torch.nn.Module:
    """Give the user's own module of a compiled or a data-parallel one."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and type(module).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel"):
            inner = getattr(module, "module", None)
        if not isinstance(inner, torch.nn.Module):
            return module
        module = inner


def _name(model: torch.nn.Module, name: str) -> str:
    """Give the parameter's name for an argument by position."""
    if not name.isdigit():
        return name
    try:
        names = list(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):
        return name
    return names[int(name)] if int(name) < len(names) else name
