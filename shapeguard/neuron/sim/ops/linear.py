"""Operators that TorchNeuron registers whole and that have no kernel on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.counting import Plan
from shapeguard.neuron.sim.device import Device, leave
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.storage import Tensor
from shapeguard.neuron.sim.torch_private import overload


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    op = overload("linear_backward")
    assert op is not None
    plan = Plan(op, "linear_backward")

    def linear_backward(self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: Any) -> Any:
        x, grad, w = (device.enter_tensor(each) for each in (self, grad_output, weight))
        flat_grad = grad.reshape(-1, grad.shape[-1]) if grad.dim() else grad.reshape(1, 1)
        flat_x = x.reshape(-1, x.shape[-1])
        grad_x = torch.matmul(grad, w) if output_mask[0] else None
        grad_w = torch.mm(flat_grad.t(), flat_x).reshape(w.shape) if output_mask[1] else None
        grad_b = flat_grad.sum(0) if output_mask[2] else None
        device.counter.eager(plan, (self, grad_output, weight, output_mask), {})
        return leave((grad_x, grad_w, grad_b))

    return {"linear_backward": linear_backward, "_fused_rms_norm_backward": _rms_norm_backward(device)}


def _rms_norm_backward(device: Device) -> Kernel:
    op = overload("_fused_rms_norm_backward")
    assert op is not None
    plan = Plan(op, "_fused_rms_norm_backward")

    def backward(grad_out: Tensor, input: Tensor, normalized_shape: Any, rstd: Tensor, weight: Any, output_mask: Any) -> Any:
        grad, x, scale = (device.enter_tensor(each) for each in (grad_out, input, rstd))
        dims = tuple(range(-len(normalized_shape), 0))
        wide = torch.promote_types(x.dtype, torch.float32)
        normal = x.to(wide) * scale
        weighted = grad.to(wide) if weight is None else grad.to(wide) * device.enter_tensor(weight).to(wide)
        grad_x = (weighted - normal * (weighted * normal).mean(dims, keepdim=True)) * scale
        grad_w = (grad.to(wide) * normal).sum_to_size(tuple(normalized_shape)) if weight is not None else None
        device.counter.eager(plan, (grad_out, input, normalized_shape, rstd, weight, output_mask), {})
        return leave((grad_x.to(x.dtype), None if grad_w is None else grad_w.to(weight.dtype)))

    return backward
