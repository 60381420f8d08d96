"""Several ranks started by torchrun: one event file each, one report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

DATA_PARALLEL = """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("neuron")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 4).to("neuron"))
forward = torch.compile(model, backend="neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    rows = torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * step + rank)).to("neuron")
    forward(rows).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
total = torch.ones(3, device="neuron") * (rank + 1)
dist.all_reduce(total)
names = [None, None]
dist.all_gather_object(names, f"rank {rank}")
if rank == 0:
    print([round(value, 4) for value in model.module.weight.flatten().tolist()], total.tolist(), names)
dist.destroy_process_group()
"""
ALONE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    for rank in range(2):
        rows = torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        (model(rows).pow(2).mean() / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
print([round(value, 4) for value in model.weight.flatten().tolist()], [3.0, 3.0, 3.0], ["rank 0", "rank 1"])
"""


def test_two_ranks_train_as_one_process_does_and_are_merged(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(DATA_PARALLEL)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "ranks.py"]
    command = [sys.executable, "-m", "shapeguard", "trace", "--run-dir", "run", "--", sys.executable, *launch]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    alone = subprocess.run([sys.executable, "-c", ALONE], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == alone.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["totals"]["regions"] == 1
    assert summary["totals"]["collective"] > 0
    assert {path.name[:6] for path in (tmp_path / "run").glob("rank-*.jsonl")} >= {"rank-0", "rank-1"}
