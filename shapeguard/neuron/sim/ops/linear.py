"""Backward operators that TorchNeuron registers whole and that torch has no CPU kernel for."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.kernels import Kernel, counted
from shapeguard.neuron.sim.storage import Tensor


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    found = {name: counted(device, name, inner) for name, inner in inner_kernels().items()}
    return {**found, "_grouped_mm": counted(device, "_grouped_mm", _grouped_mm)}


def _grouped_mm(a: Tensor, b: Tensor, *rest: Any, **settings: Any) -> Tensor:
    if a.is_meta and a.dim() == 2 and b.dim() == 3:
        # Torch's own shape function takes bfloat16 only; the CPU and the experts of small models use float32 as well.
        return a.new_empty((a.shape[0], b.shape[2]))
    return torch.ops.aten._grouped_mm(a, b, *rest, **settings)


def inner_kernels() -> dict[str, Kernel]:
    """Give what computes them on inner tensors; compiled graphs run these too."""
    return {"linear_backward": _linear_backward, "_fused_rms_norm_backward": _rms_norm_backward}


def _linear_backward(x: Tensor, grad: Tensor, weight: Tensor, output_mask: Any) -> Any:
    """Give the gradients of x wᵀ + b for x, w and b."""
    flat_grad = grad.reshape(-1, grad.shape[-1])
    grad_x = torch.matmul(grad, weight) if output_mask[0] else None
    grad_w = torch.mm(flat_grad.t(), x.reshape(-1, x.shape[-1])) if output_mask[1] else None
    return grad_x, grad_w, flat_grad.sum(0) if output_mask[2] else None


def _rms_norm_backward(grad: Tensor, x: Tensor, shape: Any, rstd: Tensor, weight: Any, output_mask: Any) -> Any:
    """Give the gradients of x · rstd · w for x and w, computed in float32 at least."""
    wide = torch.promote_types(x.dtype, torch.float32)
    dims = tuple(range(-len(shape), 0))
    normal = x.to(wide) * rstd
    weighted = grad.to(wide) if weight is None else grad.to(wide) * weight.to(wide)
    grad_x = (weighted - normal * (weighted * normal).mean(dims, keepdim=True)) * rstd
    if weight is None or not output_mask[1]:
        return grad_x.to(x.dtype), None
    return grad_x.to(x.dtype), (grad.to(wide) * normal).sum_to_size(tuple(shape)).to(weight.dtype)
