"""What the simulated device costs beside plain CPU torch in the same run, with everything counted.

Run it as `python benchmarks/device.py [small] [compiled] [large]`. The small operators are medians, of the best of some
rounds (others may use the machine); the compiled step is a median of processor time. Each is given beside the same work
on the CPU. The large models run under `--inner meta`, each in a process of its own: seconds without imports, and the
process's peak.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shapeguard.trace.settings import Settings, environment

PARTS = ("small", "compiled", "large")
ROUNDS = 15
CALLS = 60
LAYERS = {
    "8 billion": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32},
    "70 billion": {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64},
}


def median_us(work: Callable[[], object]) -> float:
    """Give the median of some calls in microseconds, of the best round."""
    for _ in range(CALLS):
        work()
    rounds = []
    for _ in range(ROUNDS):
        took = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            work()
            took.append(time.perf_counter() - begin)
        rounds.append(statistics.median(took) * 1e6)
    return min(rounds)


def small(device: str) -> dict[str, Callable[[], object]]:
    """Give the small pieces of work on a device."""
    import torch
    from torch import nn

    x, y = torch.randn(8, 8).to(device), torch.randn(8, 8).to(device)
    weight = torch.randn(8, 8).to(device).requires_grad_()
    layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to(device)

    def forward_and_backward() -> None:
        weight.grad = None
        (weight * 2).sum().backward()

    def layers_forward_and_backward() -> None:
        layers.zero_grad()
        layers(x).sum().backward()

    return {
        "add 8x8": lambda: x + y,
        "view": lambda: x.view(64),
        "forward and backward of (w * 2).sum()": forward_and_backward,
        "forward and backward of two linear layers": layers_forward_and_backward,
    }


def run_small() -> None:
    """Print the small pieces, each on the CPU and on the device."""
    here, there = small("cpu"), small("neuron")
    for name in here:
        cpu, device = median_us(here[name]), median_us(there[name])
        print(f"{name}: CPU {cpu:.1f} µs, neuron {device:.1f} µs, {device / cpu:.1f} times")


def step(device: str, *, has_attention: bool) -> Callable[[], object]:
    """Give a training step of a compiled model on a device."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    if has_attention:
        block = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
        model: nn.Module = nn.TransformerEncoder(block, 4, enable_nested_tensor=False).to(device)
    else:
        parts = [(nn.LayerNorm(256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4)]
        model = nn.Sequential(*[layer for part in parts for layer in part]).to(device)
    run = torch.compile(model, backend="neuron" if device == "neuron" else plain_backend(), dynamic=False)
    x = torch.randn(8, 256, 256).to(device)

    def work() -> None:
        model.zero_grad()
        run(x).square().mean().backward()

    return work


def plain_backend() -> Any:
    """Give what runs the same graphs after AOTAutograd on the CPU, as they are."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._functorch.partitioners import default_partition

    def compile_graph(graph: Any, inputs: Any) -> Any:
        return make_boxed_func(graph.forward)

    return aot_autograd(fw_compiler=compile_graph, partition_fn=default_partition)


def run_compiled() -> None:
    """Print a compiled step on both; they take turns, so that others' load hits both alike.

    The difference is what tracing costs. With attention the device's graph holds Neuron's fused operator, which ends in
    the kernel that the CPU's graph holds by its own name.
    """
    for has_attention in (False, True):
        here, there = (step(device, has_attention=has_attention) for device in ("cpu", "neuron"))
        for work in (here, there) * 2:
            work()
        took: dict[str, list[float]] = {"CPU": [], "neuron": []}
        for _ in range(ROUNDS):
            for name, work in (("CPU", here), ("neuron", there)):
                begin = time.process_time()
                work()
                took[name].append(time.process_time() - begin)
        cpu, device = (statistics.median(values) * 1e3 for values in took.values())
        kind = "with attention" if has_attention else "of one graph"
        print(f"compiled step {kind}: CPU {cpu:.1f} ms, neuron {device:.1f} ms, {100 * (device / cpu - 1):+.1f} %")


def run_large(name: str) -> None:
    """Print how long a model of that size takes for a forward and backward of 1 x 2048, layer by layer compiled."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    begin = time.perf_counter()
    config = Qwen3Config(
        num_key_value_heads=8,
        head_dim=128,
        vocab_size=151936,
        use_cache=False,
        tie_word_embeddings=False,
        **LAYERS[name],
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("neuron"):
        model = Qwen3ForCausalLM(config)
    for layer in model.model.layers:
        layer.compile(backend="neuron")
    ids = torch.zeros(1, 2048, dtype=torch.long, device="neuron")
    model(ids, labels=ids).loss.backward()
    took_s = time.perf_counter() - begin
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{name}: {count / 1e9:.2f} billion parameters, {took_s:.1f} s, {peak_gib:.2f} GiB")


def start(folder: str, inner: str, *words: str) -> None:
    """Run a part of this file on the device, in a process of its own."""
    env = environment(Settings(inner=inner), folder=Path(folder), root=Path(folder), base=dict(os.environ))
    subprocess.run([sys.executable, __file__, json.dumps(words)], env={**env, "OMP_NUM_THREADS": "1"}, check=True)


def main() -> int:
    """Run the parts that are named, all without a name."""
    if sys.argv[1:2] and sys.argv[1].startswith("["):
        part, *rest = json.loads(sys.argv[1])
        {"small": run_small, "compiled": run_compiled, "large": run_large}[part](*rest)
        return 0
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for part in sys.argv[1:] or PARTS:
            if part == "large":
                for name in LAYERS:
                    start(folder, "meta", "large", name)
            else:
                start(folder, "cpu", part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
