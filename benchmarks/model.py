"""What the compile model costs for each operator that the simulated device runs: telling whether its key is known.

Run it as `python benchmarks/model.py`: medians, of the best of some rounds (others may use the machine). "model" is
a known call costs beyond reaching its tensors; "first" is what a new key costs, once: described, keyed, written down.
Each is given beside the same operator on the CPU in the same run. The limit is 8 µs for a known call.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shapeguard.trace.settings import Settings, environment

ROUNDS = 15
CALLS = 200
LIMIT_US = 8.0


def median_us(work: Callable[[], object]) -> float:
    """Give the median of some calls in microseconds, of the best round."""
    rounds = []
    for _ in range(ROUNDS):
        took = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            work()
            took.append(time.perf_counter() - begin)
        rounds.append(statistics.median(took) * 1e6)
    return min(rounds)


def calls() -> dict[str, tuple[Any, ...]]:
    """Give operators of every kind of argument, with arguments on the CPU."""
    import torch

    x, weight, row = torch.ones(8, 16), torch.ones(16, 16), torch.ones(16)
    return {
        "add.Tensor": (x, x),
        "mul.Tensor": (x, 2.0),
        "linear": (x, weight, row),
        "_softmax": (x, 1, False),
        "sum.dim_IntList": (x, [1], True),
        "native_layer_norm": (x, [16], row, row, 1e-5),
        "cat": ([x, x, x], 0),
        "mm": (x, weight.t()),
        "neg": (x[:, :8],),
    }


def on_device(value: Any) -> Any:
    """Give an argument on the device, with its layout."""
    import torch

    if isinstance(value, list):
        return [on_device(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    count = value.untyped_storage().nbytes() // value.itemsize
    flat = torch.ones(count).to("neuron")
    return flat.as_strided(value.shape, value.stride(), value.storage_offset())


def measure() -> int:
    """Print each operator's costs; 1 where a known call costs more than the limit."""
    from torch_neuronx import _device

    device = _device.claim().device
    models = []
    for name, there in calls().items():
        cpu, model, first = one(device, name, there)
        models.append(model)
        print(f"{name}: model {model:.1f} µs ({model / cpu:.1f} times the CPU's {cpu:.1f} µs), first {first:.0f} µs")
    median = statistics.median(models)
    print(f"median {median:.1f} µs, most {max(models):.1f} µs; limit {LIMIT_US:.0f} µs")
    return int(max(models) > LIMIT_US)


def one(device: Any, name: str, there: tuple[Any, ...]) -> tuple[float, float, float]:
    """Give what an operator costs on the CPU, what its model costs when known, and when new."""
    from shapeguard.neuron.sim.calls import entering
    from shapeguard.neuron.sim.counting import Plan
    from shapeguard.neuron.sim.torch_private import overload

    op = overload(name)
    assert op is not None
    here = tuple(on_device(value) for value in there)
    plan = Plan(op, name)
    enter, seen = entering(op, plan, device), plan.seen

    def known() -> None:
        parts: list[Any] = []
        enter(here, parts.append)
        seen[tuple(parts)].times += 1

    def forgotten() -> None:
        seen.clear()
        device.counter.neffs.entries.clear()
        parts: list[Any] = []
        enter(here, parts.append)
        device.counter.first(plan, tuple(parts), here, {})

    first = median_us(forgotten)
    return median_us(lambda: op(*there)), median_us(known) - median_us(lambda: bare(here)), first


def bare(values: tuple[Any, ...]) -> list[Any]:
    """Reach the inner tensors and do no more."""
    from shapeguard.neuron.sim.storage import Tensor, unwrap

    return [
        unwrap(value) if isinstance(value, Tensor) else [unwrap(item) for item in value] if _is_list(value) else value
        for value in values
    ]


def _is_list(value: Any) -> bool:
    import torch

    return isinstance(value, list) and isinstance(value[0], torch.Tensor)


def main() -> int:
    """Measure in a process of its own, which has the device."""
    if sys.argv[1:] == ["here"]:
        return measure()
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Settings(), folder=Path(folder), root=Path(folder), base=dict(os.environ))
        return subprocess.run([sys.executable, __file__, "here"], env={**env, "OMP_NUM_THREADS": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
