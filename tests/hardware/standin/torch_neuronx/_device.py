"""The simulated device, claimed without a recorder; every compile goes through the functions of `_C`."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from shapeguard.core.cost import EAGER_S
from shapeguard.core.forbid import GATE
from shapeguard.neuron.model import eager
from shapeguard.neuron.model.layouts import Kind, Layout
from shapeguard.neuron.model.policy import from_environment
from shapeguard.neuron.sim.register import register

_NARROW = {"int64": "int32", "float64": "float32"}


class Silent:
    """Takes what the simulated device says, and says nothing."""

    def emit(self, event: Any) -> None:
        return None

    def site(self) -> None:
        return None

    def region_begins(self, is_training: Any) -> None:
        return None


claimed = register(sink=Silent(), policy=from_environment(os.environ, target=os.environ.get("STANDIN_TARGET", "trn2")))
counter = claimed.device.counter
request = counter.neffs.request
request_eager = counter.eager_neffs.request
visible: set[str] = set()
"""Keys whose compile is through: what is under way shows after `synchronize()` only."""
asked: list[Any] = []
answered: list[Any] = []


@contextmanager
def allowed() -> Iterator[None]:
    """Compile whatever is forbidden: the real package knows nothing of that switch."""
    before, GATE.mode = GATE.mode, ""
    try:
        yield
    finally:
        GATE.mode = before


def synchronize(device: Any = None) -> None:
    """Wait for what was submitted."""
    visible.update(counter.neffs.entries)


def native(name: str, plain: Any) -> Any:
    """Give a function of `_C` as TorchNeuron's own Python code gets it: looked up at each call."""
    return getattr(sys.modules.get("torch_neuronx._C"), name, plain)


def compile_eager(call: eager.Call, kind: str = "eager") -> Any:
    """Take an eager kernel: to the pipeline in async mode, through the Python cache in sync mode."""
    from torch_neuronx import _C

    counter.refresh_if_stale()
    counter.executed.add(call.op)
    policy = counter.policy
    text = eager.key(call, policy)
    if policy.is_sync:
        if text not in counter.eager_neffs.entries:
            native("_log_neff_cache_miss", _C.miss)(f"aten::{call.op}", text)
        entry, _ = request_eager(text, text, EAGER_S)
        return entry
    asked.append(text)
    inputs = tuple(tensor(spec) for _, spec in eager.used(call))
    bare = eager.key(call, replace(policy, is_sync=True))
    submit = native("_submit_xla_task_to_pipeline", _C.submit)
    submit(f"aten::{call.op}", inputs, outputs(call), b"", None, bare, "", kind == "collective", {})
    return answered.pop()


def compile_graph(key: str, program: str, seconds: float = 0.0) -> Any:
    """Take a graph of torch.compile."""
    from torch_neuronx import _C

    asked.append((key, program, seconds))
    native("compile_graph", _C.graph)(key.partition("_")[0], program.encode(), "c10d" in program)
    return answered.pop()


def tensor(spec: eager.Spec) -> torch.Tensor:
    """Give what is handed over: 64-bit values narrowed, layouts as they are."""
    dtype = getattr(torch, _NARROW.get(spec.dtype, spec.dtype))
    shape, layout = spec.shape, spec.layout
    if layout is None:
        return torch.empty(shape, dtype=dtype, device="meta")
    return _laid_out(shape, layout, dtype)


def _laid_out(shape: tuple[int, ...], layout: Layout, dtype: torch.dtype) -> torch.Tensor:
    if layout.kind is Kind.PERMUTED:
        strides, step = [1] * len(shape), 1
        for axis in reversed(layout.numbers):
            strides[axis], step = step, step * shape[axis]
        return torch.empty_strided(shape, strides, dtype=dtype, device="meta")
    if layout.kind is Kind.EXPANDED:
        return torch.empty(layout.numbers, dtype=dtype, device="meta").expand(shape)
    if layout.kind is Kind.SLICE:
        *base, axis, start, end = layout.numbers
        whole = torch.empty(base, dtype=dtype, device="meta").narrow(axis, start, end - start)
        return whole.reshape(shape) if whole.numel() == 0 else whole.as_strided(shape, _strides(shape, whole), start)
    return torch.empty((*shape, 2), dtype=dtype, device="meta")[..., 0]


def _strides(shape: tuple[int, ...], whole: torch.Tensor) -> tuple[int, ...]:
    """Give the strides of a slice with the axes of length 1 that its layout leaves out."""
    rest = list(whole.stride())
    return tuple(rest.pop(0) if length != 1 and rest else 1 for length in shape)


def outputs(call: eager.Call) -> tuple[torch.Tensor, ...]:
    """Give what the kernel writes into, as far as the call says it."""
    arguments = dict(call.arguments)
    if isinstance(out := arguments.get("out"), eager.Spec):
        return (tensor(out),)
    if call.op in ("full", "zeros") and isinstance(size := arguments.get("size"), eager.Value):
        return (torch.empty(ast.literal_eval(size.text), device="meta"),)
    if isinstance(count := arguments.get("count"), eager.Value):
        return (torch.empty(int(count.text), device="meta"),)
    dtype, own = arguments.get("dtype"), arguments.get("self")
    if call.op in ("copy_", "_to_copy") and isinstance(dtype, eager.Value) and isinstance(own, eager.Spec):
        return (torch.empty(own.shape, dtype=getattr(torch, dtype.text), device="meta"),)
    return ()


counter._compile = compile_eager  # type: ignore[method-assign]
counter.neffs.request = compile_graph  # type: ignore[method-assign]
