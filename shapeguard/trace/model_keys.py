"""Which model runs: the digest of its configuration, or of its parameters where it has none."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch

from shapeguard.core.graphs import model_key, module_key


class ModelFacts:
    """Looks at each model once."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[torch.nn.Module, Mapping[str, Any]] = weakref.WeakKeyDictionary()

    def of(self, module: torch.nn.Module) -> Mapping[str, Any]:
        """Give the parts of an event: `config`, a digest, and `tp`; what is not known stands in none."""
        inner = getattr(module, "_orig_mod", module)
        if inner not in self._known:
            self._known[inner] = _facts(inner)
        return self._known[inner]


def _facts(module: torch.nn.Module) -> Mapping[str, Any]:
    try:
        config, tp = _config(module), getattr(module, "_tp_size", None)
    except Exception:
        # A model's own attributes run code of its own; a digest is not worth a program.
        return {}
    return {"config": config, "tp": tp} if isinstance(tp, int) and tp > 1 else {"config": config}


def _config(module: torch.nn.Module) -> str:
    name = type(module).__name__
    differing = getattr(getattr(module, "config", None), "to_diff_dict", None)
    if callable(differing):
        values = differing()
        if isinstance(values, Mapping):
            return model_key(name, values).config
    classes = {type(each).__name__ for each in module.modules()}
    parameters = ((path, tuple(each.shape), str(each.dtype)) for path, each in module.named_parameters())
    return module_key(name, classes, parameters).config
