"""Scaled dot product attention: one fused operator for four dimensions, as TorchNeuron registers it (facts 1.6)."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.kernels import Kernel, counted
from shapeguard.neuron.sim.storage import Tensor

_FORWARD = "_scaled_dot_product_fused_attention_overrideable"
_BACKWARD = f"{_FORWARD}_backward"


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    return {name: counted(device, name, inner) for name, inner in inner_kernels().items()}


def inner_kernels() -> dict[str, Kernel]:
    """Give what computes them on inner tensors; compiled graphs run these too."""
    return {_FORWARD: _forward, _BACKWARD: _backward}


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Choose the operator for `scaled_dot_product_attention`: the fused one for four dimensions."""
    if query.dim() != 4:
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    if enable_gqa and key.shape[1] != query.shape[1]:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, dim=1), value.repeat_interleave(times, dim=1)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
    return torch.ops.aten._scaled_dot_product_fused_attention_overrideable(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )[0]


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: Any = None,
) -> Any:
    seed = torch.zeros((), dtype=torch.int64, device=query.device)
    # Filled in only for their shapes where the backward computes what it needs anew.
    sums = torch.zeros(query.shape[:3], dtype=torch.float32, device=query.device)
    if _host_has_kernel(query, key, value, attn_bias, dropout_p):
        result, its_sums = _flash(query, key, value, 0.0, is_causal, attn_mask=_mask(attn_bias, query), scale=scale)
        sums.copy_(its_sums)
    elif dropout_p > 0.0 and not query.is_meta:
        # Of the host's generator, as every mask is; the backward draws the same mask from the seed.
        seed = torch.randint(2**31, ())
        wide = torch.promote_types(query.dtype, torch.float32)
        weights = _weights(query.to(wide), key.to(wide), attn_bias, is_causal=is_causal, scale=scale)
        result = ((weights * _kept(weights, dropout_p, seed)) @ value.to(wide)).to(query.dtype)
    else:
        result = torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_bias, 0.0, is_causal, None, scale=scale
        )[0]
    out = _laid_out_like(query, result)
    nothing = torch.empty(0, dtype=torch.int64, device=query.device)
    mask = torch.empty(0, dtype=query.dtype, device=query.device)
    return out, sums, nothing, nothing.clone(), query.shape[2], key.shape[2], seed, seed.clone(), mask


_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
_HOST_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _host_has_kernel(query: Tensor, key: Tensor, value: Tensor, bias: Any, dropout_p: float) -> bool:
    """Tell whether torch's own kernel for the CPU does it, as it does for a model on the CPU: twice as fast."""
    inputs = (query, key, value)
    has_mask = bias is not None and bias.numel() > 0
    return (
        dropout_p == 0.0
        and not query.is_meta
        and query.dtype in _HOST_DTYPES
        # Without elements it ends the process.
        and all(each.numel() and each.stride(-1) == 1 and each.dtype is query.dtype for each in inputs)
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and (not has_mask or bias.dim() in (2, 4))
    )


def _mask(bias: Any, query: Tensor) -> Tensor | None:
    return bias.to(query.dtype) if bias is not None and bias.numel() > 0 else None


def _weights(q: Tensor, k: Tensor, bias: Any, *, is_causal: bool, scale: Any) -> Tensor:
    """Give softmax(q kᵀ · scale + bias)."""
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None and bias.numel() > 0:
        scores = scores + bias.to(q.dtype)
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores.softmax(-1).nan_to_num(0.0)


def _kept(weights: Tensor, dropout_p: float, seed: Tensor) -> Tensor:
    """Give what the weights are multiplied with in dropout: 0 where one is dropped, larger than 1 elsewhere."""
    if dropout_p == 0.0 or weights.is_meta:
        return torch.ones((), dtype=weights.dtype, device=weights.device)
    generator = torch.Generator().manual_seed(int(seed))
    drawn = torch.rand(weights.shape, generator=generator, dtype=weights.dtype)
    return (drawn >= dropout_p).to(weights.dtype) / max(1.0 - dropout_p, 1e-9)


def _laid_out_like(model: Tensor, result: Tensor) -> Tensor:
    """Give the result with its axes in memory in the order of `model`'s, as torch's own shape function promises."""
    order = sorted(range(model.dim()), key=model.stride().__getitem__, reverse=True)
    inverse = sorted(range(model.dim()), key=order.__getitem__)
    return result.permute(order).contiguous().permute(inverse)


def _backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Any,
    grad_input_mask: Any,
    *saved: Any,
    scale: Any = None,
) -> Any:
    """Give the gradients of softmax(q kᵀ · scale + bias) v."""
    # Saved: output, sums, both sequence offsets and lengths, dropout, causality, two seeds; most are made anew.
    dropout_p, is_causal = saved[6:8]
    inputs = (query, key, value)
    wants_bias = attn_bias is not None and attn_bias.numel() > 0 and grad_input_mask[3]
    if wants_bias or not _host_has_kernel(*inputs, attn_bias, dropout_p):
        return _written_out(grad_out, inputs, attn_bias, saved, wants_bias=wants_bias, scale=scale)
    grads = _flash_backward(
        grad_out.contiguous(), *inputs, *saved[:2], 0.0, is_causal, attn_mask=_mask(attn_bias, query), scale=scale
    )
    return (*(_laid_out_like(of, grad) for of, grad in zip(inputs, grads, strict=True)), None)


def _written_out(
    grad_out: Tensor, inputs: tuple[Tensor, ...], attn_bias: Any, saved: Any, *, wants_bias: bool, scale: Any
) -> Any:
    """Give the gradients step by step, computed in float32 at least."""
    query, key, value = inputs
    dropout_p, is_causal, seed = saved[6:9]
    wide = torch.promote_types(query.dtype, torch.float32)
    q, k, v, grad = (each.to(wide) for each in (*inputs, grad_out))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    weights = _weights(q, k, attn_bias, is_causal=is_causal, scale=scale)
    kept = _kept(weights, dropout_p, seed)
    grad_weights = grad @ v.transpose(-2, -1) * kept
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(-1, keepdim=True))
    grad_q = _laid_out_like(query, (grad_scores @ k * factor).to(query.dtype))
    grad_k = _laid_out_like(key, (grad_scores.transpose(-2, -1) @ q * factor).to(key.dtype))
    grad_v = _laid_out_like(value, ((weights * kept).transpose(-2, -1) @ grad).to(value.dtype))
    return grad_q, grad_k, grad_v, grad_scores.sum_to_size(attn_bias.shape).to(attn_bias.dtype) if wants_bias else None
