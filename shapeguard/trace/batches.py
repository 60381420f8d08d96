"""Watches data loaders: which line made one, which collator made the batch whose shape is looked at."""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any

import torch

from shapeguard.trace.recorder import Recorder
from shapeguard.trace.sources import made_at


def watch(recorder: Recorder) -> None:
    """Note every batch that a `DataLoader` of this process gives."""
    from torch.utils.data import dataloader

    plain_init = dataloader.DataLoader.__init__
    plain_next = dataloader._BaseDataLoaderIter.__next__

    @functools.wraps(plain_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        plain_init(self, *args, **kwargs)
        # Not with `setattr`: the loader guards its attributes.
        self.__dict__["_shapeguard_site"] = recorder.site()

    def __next__(self: Any) -> Any:  # noqa: N807
        batch = plain_next(self)
        _note(recorder, self, batch)
        return batch

    dataloader.DataLoader.__init__ = __init__  # type: ignore[method-assign]
    dataloader._BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign]


def _note(recorder: Recorder, iterator: Any, batch: Any) -> None:
    collator = _site_of(recorder, iterator._collate_fn)
    loader = _loader_site(iterator)
    owners = []
    if collator:
        owners.append({"role": "collate", **collator})
    if loader:
        owners.append({"role": "loader", **loader})
    recorder.owners = owners
    shapes = {name: list(value.shape) for name, value in _tensors(batch).items()}
    if shapes:
        facts = {"shapes": shapes, "last": _is_short(iterator, shapes), **_tokens(batch)}
        recorder.emit({"type": "batch", "site": collator, "loader": loader, **facts})


def _is_short(iterator: Any, shapes: dict[str, list[int]]) -> bool:
    """Tell whether the batch has fewer rows than the loader's batch size."""
    wanted = getattr(iterator._index_sampler, "batch_size", None)
    first = next(iter(shapes.values()))
    return isinstance(wanted, int) and bool(first) and first[0] < wanted


def _loader_site(iterator: Any) -> Any:
    # The iterator keeps the data set and not the loader, so the loader's line is looked up by what they share.
    import gc

    if not hasattr(iterator, "_shapeguard_loader"):
        owners = [each for each in gc.get_referrers(iterator._dataset) if isinstance(each, dict)]
        sites = [each.get("_shapeguard_site") for each in owners if each.get("_shapeguard_site")]
        iterator._shapeguard_loader = sites[0] if sites else None
    return iterator._shapeguard_loader


def _site_of(recorder: Recorder, function: Any) -> dict[str, Any] | None:
    """Give where a user's collate function is defined, or where the user made a library's collator."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "data_collator"):
            # Trainer wraps the collator to drop columns.
            function = function.data_collator
        else:
            break
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    if isinstance(code, CodeType) and recorder.sites.is_users(code):
        return recorder.sites.of_code(code)
    name = getattr(function, "__name__", type(function).__name__)
    return made_at(recorder.sites, name)


def _tensors(batch: Any) -> dict[str, torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        return {"0": batch}
    if hasattr(batch, "items"):
        return {str(name): value for name, value in batch.items() if isinstance(value, torch.Tensor)}
    if isinstance(batch, (list, tuple)):
        return {str(index): value for index, value in enumerate(batch) if isinstance(value, torch.Tensor)}
    return {}


def _tokens(batch: Any) -> dict[str, int]:
    """Give real and padded tokens where the batch has an attention mask on the host."""
    mask = _tensors(batch).get("attention_mask")
    if mask is None or not mask.is_cpu or mask.dim() != 2:
        return {}
    real = int(mask.count_nonzero())
    return {"real": real, "padded": mask.numel() - real}
