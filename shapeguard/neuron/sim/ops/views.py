"""Operators that only move metadata: torch's CPU kernels do it on the outer tensors, nothing compiles (facts 1.3)."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.meta import keeps_values
from shapeguard.neuron.sim.storage import Held, Tensor, held, new_outer, set_source
from shapeguard.neuron.sim.torch_private import cpu_kernel, overload

_VIEWS = """
    view as_strided unfold _reshape_alias view.dtype view_as_real view_as_complex alias as_strided_
""".split()


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    found: dict[str, Kernel] = {}
    for name in _VIEWS:
        op = overload(name)
        if op is not None and op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CPU):
            found[name] = cpu_kernel(op)

    def resize(self: Tensor, size: tuple[int, ...], *, memory_format: object = None) -> Any:
        stride = torch.empty(size, device="meta").stride()
        needed = prod(size)
        box = held(self)
        if box is not None and (needed + self.storage_offset()) * self.itemsize <= box.size:
            return set_source(self, self.untyped_storage(), self.storage_offset(), size, stride)
        grown = torch.empty(size, dtype=self.dtype, device=device.inner if box is None else box.base.device)
        old = device.enter_tensor(self).reshape(-1)
        grown.view(-1)[: old.numel()] = old
        return set_source(self, new_outer(grown).untyped_storage(), 0, size, stride)

    def is_shallow_copy_possible(self: Tensor, from_: Tensor) -> bool:
        # `module.to("neuron")` then keeps its Parameter objects: tied weights stay tied, optimizers keep theirs.
        return self.layout is torch.strided and from_.layout is torch.strided

    def is_left_aligned(t: Tensor, mask: Tensor) -> bool:
        # There are no nested tensors here: the encoder then takes the padded path.
        return False

    found["_has_compatible_shallow_copy_type"] = is_shallow_copy_possible
    found["_nested_tensor_from_mask_left_aligned"] = is_left_aligned
    found["resize_"] = resize
    return {**found, **_setting(device)}


def _setting(device: Device) -> dict[str, Kernel]:
    """Give the kernels that bring a tensor to another storage."""

    def set_part(self: Tensor, source: Any, storage_offset: int, size: Any, stride: Any = ()) -> Any:
        if device.is_meta:
            _settle(source.held, self.dtype, size)
        return set_source(self, source, storage_offset, size, stride)

    def set_storage(self: Tensor, source: Any) -> Any:
        return set_part(self, source, 0, (source.held.size // self.itemsize,), (1,))

    def set_tensor(self: Tensor, source: Tensor) -> Any:
        return set_source(self, source.untyped_storage(), source.storage_offset(), source.shape, source.stride())

    def set_nothing(self: Tensor) -> Any:
        fresh = new_outer(torch.empty(0, dtype=self.dtype, device=device.inner))
        return set_source(self, fresh.untyped_storage(), 0, (0,), (1,))

    return {
        "set_.source_Storage_storage_offset": set_part,
        "set_.source_Storage": set_storage,
        "set_.source_Tensor": set_tensor,
        "set_": set_nothing,
    }


def _settle(box: Held, dtype: torch.dtype, size: Any) -> None:
    """Let bytes that were read from a file become what they are: most tensors have no values under `--inner meta`."""
    is_raw = box.dtype is torch.uint8 and dtype is not torch.uint8 and not box.base.is_meta
    if is_raw and not keeps_values(dtype, prod(size), is_known=True):
        box.lose_values()
