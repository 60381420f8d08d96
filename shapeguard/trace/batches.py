"""Watches data loaders: which line made one, which collator made the batch whose shape is looked at."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

import torch

from shapeguard.trace.recorder import Recorder
from shapeguard.trace.sources import made_at


def watch(recorder: Recorder) -> None:
    """Note every batch that a `DataLoader` of this process gives."""
    from torch.utils.data import dataloader

    plain_init = dataloader.DataLoader.__init__
    plain_iter = dataloader.DataLoader.__iter__
    plain_next = dataloader._BaseDataLoaderIter.__next__
    made: weakref.WeakSet[Any] = weakref.WeakSet()

    @functools.wraps(plain_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        plain_init(self, *args, **kwargs)
        # Not with `setattr`: the loader guards its attributes.
        self.__dict__["_shapeguard_site"] = _made_from(self, made) or recorder.site()
        made.add(self)

    @functools.wraps(plain_iter)
    def __iter__(self: Any) -> Any:  # noqa: N807
        iterator: Any = plain_iter(self)
        with contextlib.suppress(AttributeError):
            iterator._shapeguard_loader = self.__dict__.get("_shapeguard_site")
            _watch_rows(iterator)
        return iterator

    def __next__(self: Any) -> Any:  # noqa: N807
        batch = plain_next(self)
        _note(recorder, self, batch)
        return batch

    dataloader.DataLoader.__init__ = __init__  # type: ignore[method-assign]
    dataloader.DataLoader.__iter__ = __iter__  # type: ignore[method-assign]
    dataloader._BaseDataLoaderIter.__next__ = __next__  # type: ignore[method-assign]


def _made_from(loader: Any, made: Iterable[Any]) -> Any:
    """Give the line of the user's loader that a library made this one from, as `accelerator.prepare` does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("torch."):
        frame = frame.f_back
    if frame is None or not str(frame.f_globals.get("__name__", "")).startswith("accelerate."):
        return None
    same = [each for each in made if each.dataset is loader.dataset and each.collate_fn is loader.collate_fn]
    sites = {str(site): site for site in (each.__dict__.get("_shapeguard_site") for each in same) if site}
    return next(iter(sites.values())) if len(sites) == 1 else None


def _watch_rows(iterator: Any) -> None:
    """Have the lengths of the rows noted before they are padded; where workers collate, only a mask tells them."""
    fetcher = getattr(iterator, "_dataset_fetcher", None)
    if fetcher is None or hasattr(iterator, "_shapeguard_rows"):
        return
    plain = fetcher.collate_fn
    iterator._shapeguard_rows = []

    @functools.wraps(plain, updated=())
    def collate(rows: Any) -> Any:
        iterator._shapeguard_rows = _lengths(rows)
        return plain(rows)

    fetcher.collate_fn = collate


def _lengths(rows: Any) -> list[int]:
    """Give the length of every row of token ids; none where one has no length of its own."""
    if not isinstance(rows, (list, tuple)):
        return []
    found = [_length(row) for row in rows]
    return [length for length in found if length is not None] if None not in found else []


def _length(row: Any) -> int | None:
    if hasattr(row, "keys") and "input_ids" in row:
        row = row["input_ids"]
    if isinstance(row, (list, tuple)) and row and isinstance(row[0], torch.Tensor):
        row = row[0]
    if isinstance(row, torch.Tensor):
        return int(row.shape[0]) if row.dim() == 1 and not row.is_floating_point() else None
    return len(row) if isinstance(row, (list, tuple)) and (not row or isinstance(row[0], int)) else None


def _note(recorder: Recorder, iterator: Any, batch: Any) -> None:
    collator = _site_of(recorder, iterator._collate_fn)
    loader = getattr(iterator, "_shapeguard_loader", None)
    owners = []
    if collator:
        owners.append({"role": "collate", **collator})
    if loader:
        owners.append({"role": "loader", **loader})
    recorder.owners = owners
    shapes = {name: list(value.shape) for name, value in _tensors(batch).items()}
    if shapes:
        facts = {"shapes": shapes, "last": _is_short(iterator, shapes), **_tokens(batch)}
        if rows := facts.pop("rows", None) or getattr(iterator, "_shapeguard_rows", None):
            facts["rows"] = rows
        recorder.emit({"type": "batch", "site": collator, "loader": loader, **facts})


def _is_short(iterator: Any, shapes: dict[str, list[int]]) -> bool:
    """Tell whether the batch has fewer rows than the loader's batch size."""
    wanted = getattr(iterator._index_sampler, "batch_size", None)
    first = next(iter(shapes.values()))
    return isinstance(wanted, int) and bool(first) and first[0] < wanted


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


def _tokens(batch: Any) -> dict[str, Any]:
    """Give real and padded tokens, and the real length of each row, where the batch has an attention mask on the host.

    Ids that are counted but padding (a mask of ones) are not told apart: only the mask says what is real.
    """
    mask = _tensors(batch).get("attention_mask")
    if mask is None or not mask.is_cpu or mask.dim() != 2:
        return {}
    rows = [int(length) for length in mask.count_nonzero(dim=1).tolist()]
    return {"real": sum(rows), "padded": mask.numel() - sum(rows), "rows": rows}
