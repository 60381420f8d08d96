"""Eager operators are counted as TorchNeuron's public source says (numbers name rows of the facts)."""

from __future__ import annotations

import pytest

from tests.neuron.conftest import RunOnDevice, eager

HEAD = "import torch\nfrom torch import nn\nx = torch.ones(4, 8).to('neuron')\ny = torch.ones(4, 8).to('neuron')\n"


@pytest.mark.parametrize(
    ("program", "ops"),
    [
        # 1.1: scalars by type, not by value; a 0-dim tensor is a key of its own.
        ("x * 2.0; x * 3.0", ["mul.Tensor"]),
        ("x * 2.0; x * 2", ["mul.Tensor", "mul.Tensor"]),
        ("x * 2.0; x * torch.tensor(2.0)", ["mul.Tensor", "mul.Tensor"]),
        # 1.1: `alpha` by value, and only where it was passed.
        ("x.add_(y, alpha=0.1); x.add_(y, alpha=0.2); x.add_(y)", ["add_.Tensor"] * 3),
        # 1.1: in-place, out and functional forms are three graphs.
        ("x + y; x.add_(y); torch.add(x, y, out=x)", ["add.Tensor", "add_.Tensor", "add.out"]),
        # 1.1: original dtypes.
        ("x.sum(); x.half().sum()", ["sum", "_to_copy", "sum"]),
        # 1.2: an offset is free; a permutation and a slice make the consumer compile again.
        ("z = torch.ones(8, 8).to('neuron'); torch.neg(z[:4]); torch.neg(z[4:])", ["neg"]),
        ("torch.neg(x.t()); torch.neg(x.t())", ["neg"]),
        ("z = torch.ones(8, 4).to('neuron'); torch.neg(x.t()); torch.neg(z)", ["neg", "neg"]),
        ("torch.neg(x[:, :4]); torch.neg(x[:, 4:])", ["neg", "neg"]),
        # 1.2: an expanded input is materialised first.
        ("torch.neg(x[0].expand(3, 8))", ["contiguous", "neg"]),
        # 1.3: nothing compiles for views, host copies, reads, host-built tensors, random numbers.
        (
            "x.view(32); x.t(); x[0]; x.cpu(); x[0, 0].item(); torch.tensor([1.0], device='neuron'); torch.empty(2, device='neuron')",
            [],
        ),
        ("torch.randn(4, 4, device='neuron')", []),
        # 1.4: copies and casts on the device.
        ("x.clone()", ["copy_"]),
        ("x.bfloat16(); x.bfloat16()", ["_to_copy"]),
        ("x.double(); x.bool(); x.int()", ["copy_", "copy_"]),
        # 1.5: structured forms arrive as `out`.
        ("x == y; x > 0.5; x / y; x**2", ["eq.Tensor_out", "gt.Scalar_out", "div.out", "pow.Tensor_Scalar_out"]),
        ("x.mul_(y)", ["mul.out"]),
        ("nn.functional.linear(x, y)", ["linear"]),
        ("x.masked_fill(x > 0, 0)", ["gt.Scalar_out", "copy_", "masked_fill_.Scalar"]),
        ("torch.zeros_like(x)", ["zero_"]),
        ("torch.full_like(x, 3)", ["fill_.Scalar"]),
        # 1.6: factories by size; `fill_` by value; `arange` by its numbers.
        ("torch.zeros(3, device='neuron'); torch.zeros(3, device='neuron')", ["zeros"]),
        ("torch.zeros(3, device='neuron'); torch.zeros(3, device='neuron:0')", ["zeros", "zeros"]),
        ("x.fill_(1.0); x.fill_(2.0)", ["fill_.Scalar", "fill_.Scalar"]),
        ("torch.arange(0, 3, device='neuron'); torch.arange(0, 4, device='neuron')", ["arange.start_out"] * 2),
        # 1.6: an index brings its bounds checks; a mask a graph for each count.
        ("x[torch.tensor([0, 1]).to('neuron')]", ["ge.Scalar_out", "lt.Scalar_out", "any.all_out", "index.Tensor"]),
        ("x.argmax()", []),
        # 1.6: one graph for a whole list.
        ("torch._foreach_mul_([x, y], 2.0); torch._foreach_mul_([x, y], 3.0)", ["_foreach_mul_.Scalar"]),
        # 1.3: a call with an empty tensor is cut short.
        ("torch.neg(torch.empty(0, 4, device='neuron'))", []),
    ],
)
def test_a_statement_compiles_these(program: str, ops: list[str], on_device: RunOnDevice) -> None:
    _, events = on_device(HEAD + program.replace("; ", "\n"))
    assert eager(events) == ops


def test_bounds_checks_can_be_turned_off(on_device: RunOnDevice) -> None:
    program = HEAD + "x[torch.tensor([0, 1]).to('neuron')]"
    _, events = on_device(program, TORCH_NEURONX_SKIP_OP_PRECONDITIONS="1")
    assert eager(events) == ["index.Tensor"]


def test_a_mask_compiles_for_every_count_of_trues(on_device: RunOnDevice) -> None:
    program = HEAD + (
        "for count in (1, 2, 2, 3):\n"
        "    mask = torch.zeros(4, dtype=torch.bool); mask[:count] = True\n"
        "    x[mask.to('neuron')]\n"
    )
    _, events = on_device(program)
    assert eager(events).count("index.Tensor") == 3
    assert eager(events).count("nonzero") == 1


@pytest.mark.parametrize("foreach", [True, False])
def test_sgd_compiles_for_every_learning_rate_and_adamw_does_not(foreach: bool, on_device: RunOnDevice) -> None:
    program = """
import sys, torch
from torch import nn
kind, foreach = sys.argv[1], sys.argv[2] == "True"
layer = nn.Linear(8, 4).to("neuron")
optimizer = getattr(torch.optim, kind)(layer.parameters(), lr=0.1, foreach=foreach)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
x = torch.ones(2, 8).to("neuron")
for _ in range(6):
    layer(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
"""
    name = "_foreach_add_.List" if foreach else "add_.Tensor"
    _, events = on_device(program, "SGD", str(foreach))
    # One for each rate; per parameter shape where parameters go one by one.
    assert eager(events).count(name) == (6 if foreach else 12)
    _, events = on_device(program, "AdamW", str(foreach))
    late = [event for event in events if event.get("kind") == "eager" and event["step"] > 2]
    assert late == []


def test_operators_without_a_kernel_are_named_with_calls_and_bytes(on_device: RunOnDevice) -> None:
    _, events = on_device(HEAD + "for _ in range(3):\n    x.argmax(1)\n")
    last = [event for event in events if event["type"] == "fallback" and event["op"].startswith("argmax")][-1]
    assert (last["calls"], last["bytes"]) == (3, 3 * (4 * 8 * 4 + 4 * 8))


def test_the_key_does_not_depend_on_hash_seed_inner_device_or_manual_seed(on_device: RunOnDevice) -> None:
    program = HEAD + "torch.manual_seed({seed})\nz = torch.randn(8, 3, device='neuron')\n(x @ z).softmax(1).sum()\n"
    runs = [
        on_device(program.format(seed=1), PYTHONHASHSEED="1")[1],
        on_device(program.format(seed=2), PYTHONHASHSEED="2")[1],
        on_device(program.format(seed=2), inner="meta")[1],
    ]
    keys = [[event["key"] for event in events if event["type"] == "compile"] for events in runs]
    assert keys[0] == keys[1] == keys[2]
    assert len(keys[0]) == 3
