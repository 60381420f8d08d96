"""Compile budgets in tests: the marker, the fixture, `with`, `@`, and the Trainer's callback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shapeguard
from shapeguard.core.errors import UsageError

NET = """
import asyncio, pytest, torch, shapeguard

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.head(x)

def run(sizes, device="neuron", backend="neuron"):
    net = torch.compile(Net().to(device), backend=backend, dynamic=False)
    with torch.no_grad():
        for size in sizes:
            net(torch.ones(size, 8).to(device))
"""
SIMULATED = (
    NET
    + """
@pytest.mark.compile_budget(graphs=1, after_warmup=0)
def test_within():
    run([2, 2, 2, 2])

@pytest.mark.compile_budget(graphs=1)
def test_over():
    run([3, 3, 4])

def test_late(compile_budget):
    with compile_budget(after_warmup=0) as seen:
        run([5, 5, 5, 6])

def test_known_graphs_are_not_counted_again(compile_budget):
    with compile_budget(graphs=0) as seen:
        run([2, 3])
    assert (len(seen.graphs), len(seen.late)) == (0, 0)

@pytest.mark.compile_budget(graph=1)
def test_misspelt():
    pass

@shapeguard.expect(graphs=1)
def decorated():
    run([7, 8])

def test_decorated():
    decorated()

@shapeguard.expect(eager=0)
async def operators():
    torch.ones(3, device="neuron") * 2

def test_eager():
    asyncio.run(operators())

@pytest.mark.compile_budget(graphs=0)
def test_a_failure_of_its_own_comes_first():
    run([11])
    raise ValueError("mine")

@pytest.mark.compile_budget(graphs=0)
@pytest.mark.parametrize("number", range(9))
def test_many_of_one_model(number):
    run([20 + number])
"""
)


def pytest_in(folder: Path, text: str, *words: str) -> str:
    """Run pytest in a process of its own, and give what it says."""
    (folder / "test_it.py").write_text(text)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    env.pop("SHAPEGUARD_RUN_DIR", None)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "-rA", "-q"]
    ran = subprocess.run([*command, "--show-capture=no", *words], cwd=folder, env=env, capture_output=True, text=True)
    return ran.stdout + ran.stderr


def test_a_test_over_its_budget_fails_with_the_cause_and_not_a_count(tmp_path):
    said = pytest_in(tmp_path, SIMULATED, "--shapeguard")
    outcomes = {name: how for how, name in re.findall(r"^(PASSED|FAILED) test_it.py::(\w+)", said, re.MULTILINE)}
    assert outcomes == {
        "test_within": "PASSED",
        "test_over": "FAILED",
        "test_late": "FAILED",
        "test_known_graphs_are_not_counted_again": "PASSED",
        "test_misspelt": "FAILED",
        "test_decorated": "FAILED",
        "test_eager": "FAILED",
        "test_a_failure_of_its_own_comes_first": "FAILED",
        "test_many_of_one_model": "FAILED",
    }, said
    line = NET.splitlines().index("            net(torch.ones(size, 8).to(device))") + 1
    assert "compile budget of test_over: 2 graphs compiled, the limit is 1; over it:" in said
    assert re.search(rf"inference Net x 4×8 float32: x dim 0: 3, then 4 at test_it.py:{line};", said), said
    assert "1 graph compiled after warm-up, the limit is 0" in said
    assert re.search(rf"x dim 0: 5, then 6 at test_it.py:{line};", said)
    assert re.search(rf"x dim 0: 7, then 8 at test_it.py:{line};", said)
    assert "@pytest.mark.compile_budget: expect() got an unexpected keyword argument 'graph'" in said
    assert "mul.Tensor(self 3 float32): compiled for the first time at test_it.py:" in said
    assert "ValueError: mine" in said
    assert "compile budget of test_a_failure" not in said
    # Dynamo runs the ninth variant of a function eagerly: it would pass.
    assert len(re.findall(r"^FAILED test_it.py::test_many_of_one_model", said, re.MULTILINE)) == 9


def test_without_the_option_pytest_imports_no_torch_and_changes_nothing(tmp_path):
    said = pytest_in(tmp_path, "import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    assert "1 passed" in said


ELSEWHERE = (
    NET
    + """
def test_over():
    with shapeguard.expect(graphs=1):
        run([2, 2, 3], "cpu", "eager")

def test_late():
    net = torch.compile(torch.nn.Linear(2, 2), backend="eager", dynamic=False)
    optimizer = torch.optim.SGD(net.parameters())
    with shapeguard.expect(after_warmup=0):
        for size in (6, 6, 6, 7):
            net(torch.ones(size, 2)).sum().backward()
            optimizer.step()

def test_steps_by_hand():
    with shapeguard.expect(after_warmup=0) as window:
        for size in (8, 9, 9, 9):
            shapeguard.step()
            run([size], "cpu", "eager")
    assert len(window.graphs) == 2

def test_eager():
    with shapeguard.expect(eager=0):
        pass
"""
)


def test_on_any_other_device_torchs_own_record_is_read(tmp_path):
    said = pytest_in(tmp_path, ELSEWHERE)
    assert "2 graphs compiled, the limit is 1; over it:" in said
    assert "graph of forward: x dim 0: 2 → 3 at test_it.py:9" in said
    assert "1 graph compiled after warm-up, the limit is 0; over it:" in said
    assert "dim 0: 6 → 7" in said
    assert "PASSED test_it.py::test_steps_by_hand" in said
    assert "eager operators are only seen on the simulated device" in said


TRAINER = """
import sys, logging, torch
from transformers import Trainer, TrainingArguments
from shapeguard.integrations import TrainerCallback

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        return {"loss": self.head(x).sum()}

rows = [{"x": torch.ones(3, 4)}] * 4 + [{"x": torch.ones(5, 4)}] * 4
arguments = TrainingArguments(
    "out", max_steps=8, per_device_train_batch_size=1, torch_compile=True, torch_compile_backend="neuron",
    report_to=[], save_strategy="no", disable_tqdm=True, data_seed=0,
)
class InOrder(Trainer):
    def _get_train_sampler(self, dataset=None):
        return torch.utils.data.SequentialSampler(rows)

callback = TrainerCallback(action=sys.argv[1])
trainer = InOrder(Net(), arguments, train_dataset=rows, callbacks=[callback])
trainer.train()
print("steps", trainer.state.global_step, "late", len(callback.late))
"""


@pytest.mark.soak
@pytest.mark.parametrize(("action", "code", "last"), [("stop", 0, "steps 5"), ("warn", 0, "steps 8"), ("raise", 1, "")])
def test_the_callback_stops_a_training_at_the_first_late_compile(tmp_path, action, code, last):
    (tmp_path / "train.py").write_text(TRAINER)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "SHAPEGUARD_NO_CACHE": "1"}
    command = [sys.executable, "-m", "shapeguard", "trace", "-q", "--inner", "meta", "train.py", action]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    assert last in ran.stdout
    assert "compiled after warm-up, in step 5 of train" in ran.stderr
    assert "dim 1: 3, then 5" in ran.stderr


@pytest.mark.parametrize(
    "limits", [{}, {"graphs": -1}, {"graphs": True}, {"graphs": 1.5}, {"graphs": 1, "warmup_steps": -1}]
)
def test_limits_that_mean_nothing_are_refused(limits):
    with pytest.raises(UsageError):
        shapeguard.expect(**limits)


def test_a_generator_cannot_be_held_to_limits():
    with pytest.raises(UsageError, match="its body runs later"):

        @shapeguard.expect(graphs=1)
        def rows():
            yield 1
