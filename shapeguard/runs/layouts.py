"""Memory layouts of inputs: which of them only follow from the input's shape."""

from __future__ import annotations

import re

from shapeguard.runs.values import Input

_NUMBER = re.compile(r"\d+")
_NAMES_SIZES = re.compile(r"(slice|expanded) \([\d, ]+\)")
_EXPANDED = re.compile(r"expanded \(([\d, ]+)\)")
_SLICE = re.compile(r"slice \(([\d, ]+)\)")


def follows(old: Input, new: Input) -> bool:
    """Whether the input is laid out as before, but for its shape: `x[:, :-1]` of a longer tensor is as long a slice.

    Padding such an input to one length mends the layout too, and mending the layout alone changes nothing.
    """
    if len(old.shape) != len(new.shape) or old.shape == new.shape:
        return False
    if _NAMES_SIZES.sub(r"\1", old.layout) != _NAMES_SIZES.sub(r"\1", new.layout):
        return False
    cut = zip(_numbers(_SLICE, old.layout), _numbers(_SLICE, new.layout), strict=True)
    spread = zip(_numbers(_EXPANDED, old.layout), _numbers(_EXPANDED, new.layout), strict=True)
    return all(_is_cut_alike(*pair) for pair in cut) and all(_is_spread_alike(*pair) for pair in spread)


def _numbers(kind: re.Pattern[str], layout: str) -> list[list[int]]:
    return [[int(number) for number in _NUMBER.findall(found)] for found in kind.findall(layout)]


def _is_spread_alike(old: list[int], new: list[int]) -> bool:
    """Compare the sizes before expanding: the same axes had one element."""
    return [size == 1 for size in old] == [size == 1 for size in new]


def _is_cut_alike(old: list[int], new: list[int]) -> bool:
    """Compare (sizes of the larger tensor, axis, start, end): the same axis, with as much left out on both sides."""
    *old_sizes, old_axis, old_start, old_end = old
    *new_sizes, new_axis, new_start, new_end = new
    if len(old_sizes) != len(new_sizes) or (old_axis, old_start) != (new_axis, new_start):
        return False
    return old_sizes[old_axis] - old_end == new_sizes[new_axis] - new_end
