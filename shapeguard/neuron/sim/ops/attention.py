"""Scaled dot product attention: one fused operator for four dimensions, as TorchNeuron registers it (facts 1.6)."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.counting import Plan
from shapeguard.neuron.sim.device import Device, leave
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.storage import Tensor
from shapeguard.neuron.sim.torch_private import overload

_FORWARD = "_scaled_dot_product_fused_attention_overrideable"
_MATH, _OVERRIDEABLE = 0, 4  # at::SDPBackend


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    plans = {}
    for name in (_FORWARD, f"{_FORWARD}_backward"):
        op = overload(name)
        assert op is not None
        plans[name] = Plan(op, name)

    def choice(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0,
               is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False) -> int:
        return _OVERRIDEABLE if query.dim() == 4 and dropout_p == 0.0 else _MATH

    def forward(query: Tensor, key: Tensor, value: Tensor, attn_bias: Any = None, dropout_p: float = 0.0,
                is_causal: bool = False, return_debug_mask: bool = False, *, scale: Any = None) -> Any:
        q, k, v = (device.enter_tensor(each) for each in (query, key, value))
        bias = None if attn_bias is None else device.enter_tensor(attn_bias)
        k, v = _repeated(k, q), _repeated(v, q)
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=bias, dropout_p=dropout_p, is_causal=is_causal, scale=scale
        )
        arguments = (query, key, value, attn_bias, dropout_p, is_causal)
        device.counter.eager(plans[_FORWARD], arguments, {"scale": scale} if scale is not None else {})
        # Kept for the backward: the sum of the exponentials, one number a row.
        sums = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        seed = torch.empty((), dtype=torch.int64, device=q.device)
        empty = torch.empty(0, dtype=q.dtype, device=q.device)
        outer = leave((out.contiguous(), sums))
        return (*outer, None, None, q.shape[2], k.shape[2], *leave((seed, seed.clone(), empty)))

    def backward(grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_bias: Any, grad_input_mask: Any,
                 out: Tensor, logsumexp: Tensor, cum_seq_q: Any, cum_seq_k: Any, max_q: int, max_k: int,
                 dropout_p: float, is_causal: bool, philox_seed: Any, philox_offset: Any, *, scale: Any = None) -> Any:
        q, k, v, grad = (device.enter_tensor(each) for each in (query, key, value, grad_out))
        bias = device.enter_tensor(attn_bias) if attn_bias is not None and attn_bias.numel() else None
        grads = _gradients(q, k, v, grad, bias=bias, is_causal=is_causal, scale=scale)
        wanted = tuple(grad if keep else None for grad, keep in zip(grads, grad_input_mask, strict=True))
        plan = plans[f"{_FORWARD}_backward"]
        device.counter.eager(plan, (grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp), {})
        return leave(wanted)

    return {"_fused_sdp_choice": choice, _FORWARD: forward, f"{_FORWARD}_backward": backward}


def _repeated(keys: Tensor, query: Tensor) -> Tensor:
    """Repeat the heads of grouped-query attention as often as the query has them."""
    times = query.shape[1] // keys.shape[1]
    return keys if times == 1 else keys.repeat_interleave(times, dim=1)


def _gradients(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor, *, bias: Tensor | None, is_causal: bool, scale: float | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Give the gradients of softmax(q kᵀ · scale + bias) v, computed in float32 at least."""
    wide = torch.promote_types(q.dtype, torch.float32)
    heads = k.shape[1]
    qw, kw, vw, gw = q.to(wide), _repeated(k, q).to(wide), _repeated(v, q).to(wide), grad.to(wide)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = qw @ kw.transpose(-2, -1) * factor
    if bias is not None:
        scores = scores.masked_fill(~bias, float("-inf")) if bias.dtype is torch.bool else scores + bias.to(wide)
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)
    grad_weights = gw @ vw.transpose(-2, -1)
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(-1, keepdim=True))
    grad_q = (grad_scores @ kw * factor).to(q.dtype)
    grad_k = _summed(grad_scores.transpose(-2, -1) @ qw * factor, heads).to(k.dtype)
    grad_v = _summed(weights.transpose(-2, -1) @ gw, heads).to(v.dtype)
    has_grad_bias = bias is not None and bias.dtype is not torch.bool
    return grad_q, grad_k, grad_v, grad_scores.sum_to_size(bias.shape).to(bias.dtype) if bias is not None and has_grad_bias else None


def _summed(grad: Tensor, heads: int) -> Tensor:
    """Add up what the repeated heads of grouped-query attention got."""
    if grad.shape[1] == heads:
        return grad
    return grad.unflatten(1, (heads, grad.shape[1] // heads)).sum(2)
