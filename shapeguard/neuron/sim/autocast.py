"""`torch.autocast("neuron")`: which operators run in lower precision, which in float32, which in the widest dtype.

TorchNeuron registers such lists in C++; which operators stand in them is not public. These follow torch's own lists for
other accelerators and are a guess (I).
"""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.torch_private import overload

_LOWER = """
    matmul mm bmm addmm addmv addbmm baddbmm mv linear conv1d conv2d conv3d convolution conv_transpose1d
    conv_transpose2d.input conv_transpose3d.input einsum scaled_dot_product_attention chain_matmul multi_dot
    linalg_multi_dot prelu _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell
""".split()
_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar
    pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm norm.Scalar norm.ScalarOpt_dim
    nuclear_norm cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d
    hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
    multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp softmax.int log_softmax.int cumsum
    cumprod sum sum.dim_IntList prod
""".split()
_WIDEST = """
    addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add cat stack
""".split()
_KEY = torch._C._dispatch_key_parse("AutocastPrivateUse1")
_KEYS = torch._C.DispatchKeySet(_KEY)
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_DEVICE = "neuron"


def kernels() -> dict[str, Kernel]:
    """Give the kernels of the autocast key by overload name."""
    found: dict[str, Kernel] = {}
    for names, pick in ((_LOWER, _lower), (_FLOAT32, _float32), (_WIDEST, _widest)):
        for name in names:
            op = overload(name)
            if op is not None:
                found[name] = _kernel(op, pick)
    found["binary_cross_entropy"] = _banned
    return found


def _kernel(op: torch._ops.OpOverload, pick: Any) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        dtype = pick(args)
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            if dtype is None:
                return op(*args, **kwargs)
            return op(*[_cast(value, dtype) for value in args], **{k: _cast(v, dtype) for k, v in kwargs.items()})

    return kernel


def _lower(args: Any) -> torch.dtype:
    return torch.get_autocast_dtype(_DEVICE)


def _float32(args: Any) -> torch.dtype:
    return torch.float32


def _widest(args: Any) -> torch.dtype | None:
    found = {value.dtype for value in _tensors(args) if value.dtype in _FLOATS}
    return None if len(found) < 2 else torch.float32


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype in _FLOATS and value.device.type == _DEVICE else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, dtype) for item in value)
    return value


def _banned(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast; "
        "use binary_cross_entropy_with_logits or BCEWithLogitsLoss"
    )
