"""The fused cells that torch's recurrent layers pick on an accelerator: not registered by TorchNeuron, so host work."""

from __future__ import annotations

from typing import Any

import torch

from shapeguard.neuron.sim.device import Device, leave
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.storage import Tensor


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    return {name: _on_host(device, name, inner) for name, inner in inner_kernels().items()}


def inner_kernels() -> dict[str, Kernel]:
    """Give what computes them on inner tensors; compiled graphs run these too."""
    return {
        "_thnn_fused_lstm_cell": _lstm,
        "_thnn_fused_lstm_cell_backward_impl": _lstm_backward,
        "_thnn_fused_gru_cell": _gru,
        "_thnn_fused_gru_cell_backward": _gru_backward,
    }


def _on_host(device: Device, name: str, inner: Kernel) -> Kernel:
    def kernel(*args: Any) -> Any:
        result = inner(*[device.enter(value) for value in args])
        moved = sum(each.numel() * each.itemsize for each in (*args, *result) if isinstance(each, Tensor))
        device.counter.fallback(name, moved)
        return leave(result)

    return kernel


def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def _lstm(
    input_gates: Tensor, hidden_gates: Tensor, cx: Tensor, input_bias: Any = None, hidden_bias: Any = None
) -> Any:
    """Give hidden state, cell state and, for the backward, the four gates (i, f, g, o) of a batch."""
    gates = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_backward(grad_hy: Any, grad_cy: Any, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool) -> Any:
    i, f, g, o = workspace.chunk(4, 1)
    top = torch.zeros_like(cy) if grad_hy is None else grad_hy
    rest = torch.zeros_like(cy) if grad_cy is None else grad_cy
    bent = cy.tanh()
    cell = top * o * (1 - bent * bent) + rest
    grads = (cell * g * i * (1 - i), cell * cx * f * (1 - f), cell * i * (1 - g * g), top * bent * o * (1 - o))
    gates = torch.cat(grads, 1)
    return gates, cell * f, gates.sum(0) if has_bias else None


def _gru(input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """Give the hidden state and, for the backward, reset, update and new gates with what they were made from."""
    ir, iz, new = _with_bias(input_gates, input_bias).chunk(3, 1)
    hr, hz, hn = _with_bias(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * hn).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, hn], 1)


def _gru_backward(grad_hy: Tensor, workspace: Tensor, has_bias: bool) -> Any:
    r, z, n, hx, hn = workspace.chunk(5, 1)
    new = grad_hy * (1 - z) * (1 - n * n)
    update = grad_hy * (hx - n) * z * (1 - z)
    reset = new * hn * r * (1 - r)
    grad_input = torch.cat([reset, update, new], 1)
    grad_hidden = torch.cat([reset, update, new * r], 1)
    bias = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return grad_input, grad_hidden, grad_hy * z, *bias
