"""What TorchNeuron does with an input that is not contiguous (facts, section 1.2).

M: a pure permutation and a single-axis slice are folded into the consumer, whose key then holds them; an expanded input
is materialised by an `aten::contiguous` kernel of its own; anything else takes a round trip through the host.
I: `x[:, t, :]` of a contiguous tensor counts as a slice of the two last axes taken together, with start `t * D`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Kind(StrEnum):
    """What a layout is to Neuron."""

    PERMUTED = "permuted"
    SLICE = "slice"
    EXPANDED = "expanded"
    STRIDED = "strided"


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout that is not contiguous; `numbers` go into the consumer's key, or name the materialising kernel."""

    kind: Kind
    numbers: tuple[int, ...]
    """permuted: the order of axes, outermost first; slice: base shape, axis, start, end; expanded: the base shape."""
    is_guess: bool = field(default=False, compare=False)
    """Whether it is only inferred that Neuron takes it for this kind."""

    def __str__(self) -> str:
        return f"{self.kind} {self.numbers}" if self.kind is not Kind.STRIDED else "strided"


def classify(shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Layout | None:
    """Name the layout of a tensor (sizes and strides in elements); None for a contiguous one, whatever its offset."""
    axes = [axis for axis, length in enumerate(shape) if length != 1]
    if any(length == 0 for length in shape) or _is_row_major(shape, stride, axes):
        return None
    if any(stride[axis] == 0 for axis in axes):
        base = tuple(1 if step == 0 else length for length, step in zip(shape, stride, strict=True))
        return Layout(Kind.EXPANDED, base)
    order = sorted(axes, key=lambda axis: -stride[axis])
    if order != axes and _is_row_major(shape, stride, order):
        return Layout(Kind.PERMUTED, tuple(order))
    return _slice(shape, stride, offset, axes) or Layout(Kind.STRIDED, ())


def of_base(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """Give the layout as certain as what it is a part of allows, whose whole shape is `shape`.

    A slice of an axis that the whole has is read in the source; axes taken together (`x[:, t, :]`) are inferred.
    """
    if layout.kind is not Kind.SLICE or layout.numbers[layout.numbers[-3]] in shape:
        return layout
    return replace(layout, is_guess=True)


def _is_row_major(shape: tuple[int, ...], stride: tuple[int, ...], axes: list[int]) -> bool:
    expected = 1
    for axis in reversed(axes):
        if stride[axis] != expected:
            return False
        expected *= shape[axis]
    return True


def _slice(shape: tuple[int, ...], stride: tuple[int, ...], offset: int, axes: list[int]) -> Layout | None:
    """Find the one axis whose outer neighbour's stride says that the base was longer there."""
    if stride[axes[-1]] != 1:
        return None
    expected, cut = 1, -1
    base = [shape[axis] for axis in axes]
    for place in range(len(axes) - 1, -1, -1):
        step = stride[axes[place]]
        if step != expected:
            inner = stride[axes[place + 1]] if place + 1 < len(axes) else 0
            if cut >= 0 or not inner or step < expected or step % inner:
                return None
            cut = place + 1
            base[cut] = step // inner
        expected = step * shape[axes[place]]
    if cut < 0:
        return None
    start = offset % stride[axes[cut - 1]] // stride[axes[cut]]
    return Layout(Kind.SLICE, (*base, cut, start, start + shape[axes[cut]]))
