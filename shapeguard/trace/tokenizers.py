"""Keeps, with the tensors that a tokenizer gives, the user's line that called it: it owns their length."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from shapeguard.neuron.sim.storage import TOKENIZED
from shapeguard.trace.sites import Sites

_MODULE = "transformers.tokenization_utils_base"
_CALLS = ("__call__", "apply_chat_template", "encode", "pad")


class Tokenizers:
    """Watches transformers' tokenizers of this process."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._is_done = False

    def watch(self) -> None:
        """Wrap the base class if it is there by now; no library is imported for it."""
        base = getattr(sys.modules.get(_MODULE), "PreTrainedTokenizerBase", None)
        if self._is_done or base is None:
            return
        self._is_done = True
        for name in _CALLS:
            if name in base.__dict__:
                setattr(base, name, self._noted(base.__dict__[name]))

    def _noted(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = plain(*args, **kwargs)
            caller = sys._getframe(1)
            # A collator of the library pads, too: there the collator's line owns the length.
            if self._sites.is_users(caller.f_code):
                _note(result, self._sites.of_frame(caller))
            return result

        return call


def _note(result: Any, site: dict[str, Any]) -> None:
    values = result.values() if hasattr(result, "values") and not isinstance(result, torch.Tensor) else [result]
    for value in values:
        if isinstance(value, torch.Tensor) and value.dim():
            setattr(value.untyped_storage(), TOKENIZED, {**site, "size": int(value.shape[-1])})
