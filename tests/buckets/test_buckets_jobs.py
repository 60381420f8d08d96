"""What `plan` emits is run as it stands: jobs are locked and checked, the emitted loader trains in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

LENGTHS = [5] * 9 + [8] * 4 + [13] * 6 + [16] * 3
PROGRAM = """
import sys

import torch
from torch.utils.data import Subset

from loader import bucket_loader


class Tokenizer:
    pad_token_id = 0


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 50)

    def forward(self, input_ids, attention_mask, labels):
        logits = self.out(self.embed(input_ids) * attention_mask[..., None])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


only = int(sys.argv[1]) if len(sys.argv) > 1 else 0
rows = [{"input_ids": [1 + i % 49 for i in range(length)]} for length in LENGTHS]
below = {8: 0, 16: 8}[only] if only else 0
rows = [row for row in rows if below < len(row["input_ids"]) <= (only or 99)]
net = Net().to("neuron")
step = torch.compile(net, backend="neuron")
for batch in bucket_loader(rows, Tokenizer()):
    step(**{name: each.to("neuron") for name, each in batch.items()}).backward()
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "shapeguard", *words]
    return subprocess.run(command, cwd=folder, env={**kept, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)


def test_emitted_jobs_lock_the_graphs_that_the_whole_program_needs_and_check_finds_no_more(tmp_path: Path) -> None:
    (tmp_path / "lengths.txt").write_text(" ".join(map(str, LENGTHS)), encoding="utf-8")
    (tmp_path / "train.py").write_text(f"LENGTHS = {LENGTHS}\n{PROGRAM}", encoding="utf-8")
    words = ("plan", "--lengths", "lengths.txt", "--max-graphs", "4", "--for", "train", "--align", "8")
    words += ("--batch-size", "4", "--job", "train.py {bucket}")
    ran = run(tmp_path, *words, "--write", "collator=loader.py", "--write", "jobs=shapeguard.part", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["buckets"] == [8, 16]
    jobs = (tmp_path / "shapeguard.part").read_text(encoding="utf-8")
    # The program with all buckets is a job too: it needs the graphs of the emitted jobs and no others.
    whole = '\n[tool.shapeguard.jobs.whole]\ncommand = ["train.py"]\nbudget = { graphs = 4, after-warmup = 0 }\n'
    (tmp_path / "pyproject.toml").write_text(jobs + whole, encoding="utf-8")
    ran = run(tmp_path, "lock")
    assert ran.returncode == 0, ran.stderr
    lock = tomllib.loads((tmp_path / "shapeguard.lock").read_text(encoding="utf-8"))
    assert sorted(each["jobs"] for each in lock["graph"]) == 2 * [["train-16", "whole"]] + 2 * [["train-8", "whole"]]
    ran = run(tmp_path, "check", "train-16", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
