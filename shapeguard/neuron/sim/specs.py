"""What the compile model sees of a tensor: shape, type, layout, size."""

from __future__ import annotations

from math import prod

import torch

from shapeguard.neuron.model.eager import Spec
from shapeguard.neuron.model.layouts import Layout, classify, of_base
from shapeguard.neuron.sim.storage import held

_DTYPE_NAMES: dict[torch.dtype, str] = {}


def dtype_name(dtype: torch.dtype) -> str:
    """Give "bfloat16" for `torch.bfloat16`."""
    name = _DTYPE_NAMES.get(dtype)
    if name is None:
        name = _DTYPE_NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def layout_of(tensor: torch.Tensor) -> Layout | None:
    """Name the layout of a tensor; None for a contiguous one."""
    if tensor.is_contiguous():
        return None
    return classify(tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


def spec_of(tensor: torch.Tensor) -> Spec:
    """Describe a tensor to the model."""
    layout = layout_of(tensor)
    if layout is None:
        return Spec(tuple(tensor.shape), dtype_name(tensor.dtype))
    box = held(tensor)
    if box is not None:
        layout = of_base(layout, box.shape)
    return Spec(tuple(tensor.shape), dtype_name(tensor.dtype), layout, tensor.untyped_storage().nbytes())


def size_bytes(spec: Spec) -> int:
    """Give the size of a tensor's elements."""
    return prod(spec.shape) * int(getattr(torch, spec.dtype).itemsize)
