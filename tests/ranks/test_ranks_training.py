"""Training on several ranks agrees with one process, and their runs are merged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launching import PROGRAMS, plain, torchrun

ALONE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seeds = lambda rank: [torch.randn(8, generator=torch.Generator().manual_seed(100 * rank + row)) for row in range(12)]
parts = [torch.stack(seeds(rank)).split(4) for rank in range(2)]
for step in range(3):
    for rank in range(2):
        (model(parts[rank][step]).pow(2).mean() / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
print([round(value, 4) for value in model.weight.flatten().tolist()])
"""


def test_two_ranks_train_as_one_process_does_and_are_merged(tmp_path: Path) -> None:
    ran = torchrun(tmp_path, "data_parallel.py", ranks=2, options=("--fail-on", "new"))
    assert ran.code == 0, ran.report[-3000:]
    alone = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert ran.out == alone.stdout
    assert ran.summary["totals"]["regions"] == 1
    assert ran.summary["totals"]["collective"] > 0
    assert ran.summary["divergence"] is None
    assert ran.summary["device"]["world_size"] == 2
    assert {path.name[:6] for path in ran.folder.glob("rank-*.jsonl")} >= {"rank-0", "rank-1"}


@pytest.mark.soak
def test_data_parallel_training_without_values_makes_the_same_graphs(tmp_path: Path) -> None:
    ran = torchrun(tmp_path, "data_parallel.py", ranks=2, options=("--inner", "meta"))
    assert ran.code == 0, ran.report[-3000:]
    assert ran.summary["totals"]["regions"] == 1
    assert {graph["kind"] for graph in ran.summary["graphs"]} == {"forward", "backward"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    plain("small.py", str(folder))
    return str(folder)


def losses(text: str) -> list[float]:
    return json.loads(next(line for line in text.splitlines() if line.startswith("[")))


def test_four_ranks_split_by_tensor_and_data_lose_what_one_process_loses(tmp_path: Path, model: str) -> None:
    ran = torchrun(tmp_path, "hand_loop.py", model, "--tp", "2", "--fsdp", "2", ranks=4)
    assert ran.code == 0, ran.report[-3000:]
    assert losses(ran.out) == pytest.approx(losses(plain("hand_loop.py", model)), abs=1e-5)
    assert ran.summary["divergence"] is None


@pytest.mark.soak
@pytest.mark.parametrize(
    "words",
    [
        ("--tp", "2", "--fsdp", "2", "--compile"),
        ("--tp", "4"),
        ("--tp", "4", "--compile"),
        ("--fsdp", "4"),
        ("--fsdp", "4", "--compile"),
        ("--ddp",),
        ("--ddp", "--compile"),
        ("--replicate", "2", "--fsdp", "2"),
    ],
    ids=" ".join,
)
def test_four_ranks_lose_what_one_process_loses(tmp_path: Path, model: str, words: tuple[str, ...]) -> None:
    ran = torchrun(tmp_path, "hand_loop.py", model, *words, ranks=4)
    assert ran.code == 0, ran.report[-3000:]
    assert losses(ran.out) == pytest.approx(losses(plain("hand_loop.py", model)), abs=1e-5)
    assert ran.summary["divergence"] is None


@pytest.mark.soak
@pytest.mark.parametrize("compiled", [(), ("--compile",)], ids=["eager", "compiled"])
def test_trainer_on_four_ranks_loses_what_one_process_loses(
    tmp_path: Path, model: str, compiled: tuple[str, ...]
) -> None:
    ran = torchrun(tmp_path, "trainer.py", model, "--tp", "2", "--fsdp", "2", *compiled, ranks=4)
    assert ran.code == 0, ran.report[-3000:]
    assert losses(ran.out) == pytest.approx(losses(plain("hand_loop.py", model)), abs=1e-5)
    assert ran.summary["divergence"] is None


@pytest.mark.soak
@pytest.mark.parametrize("words", [("--ddp",), ("--tp", "2", "--fsdp", "2", "--compile")], ids=" ".join)
def test_four_ranks_run_without_values(tmp_path: Path, model: str, words: tuple[str, ...]) -> None:
    ran = torchrun(tmp_path, "hand_loop.py", model, *words, ranks=4, options=("--inner", "meta"))
    assert ran.code == 0, ran.report[-3000:]
    assert ran.summary["divergence"] is None


@pytest.mark.parametrize("inner", ["cpu", pytest.param("meta", marks=pytest.mark.soak)])
def test_a_search_for_parameters_without_a_gradient_finds_what_the_host_finds(tmp_path: Path, inner: str) -> None:
    ran = torchrun(tmp_path, "unused.py", ranks=2, options=("--inner", inner))
    assert ran.code == 0, ran.report[-3000:]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, str(PROGRAMS / "unused.py"), "--device", "cpu"]
    host = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "None" in host
    if inner == "cpu":
        assert ran.out == host
    else:
        assert [line.count("None") for line in ran.out.splitlines()] == [
            line.count("None") for line in host.splitlines()
        ]
