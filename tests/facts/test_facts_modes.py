"""Switches of the facts: each in a process of its own, since most are read when the device is claimed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from shapeguard.core.neffs import SIMULATED
from tests.facts.run_statements import outcomes
from tests.neuron.conftest import RunOnDevice

ADD = "from torch_neuronx import metrics; metrics.set_enabled(True); torch.neg(x.t()); torch.neg(x.t())"
COMPILED = "; f = torch.compile(lambda x: x * 3, backend='neuron'); f(x); f(x)"
PRINT = "\ns = _C._get_compilation_cache_stats()\nprint(s['total_entries'], s['in_memory_misses'], s['in_memory_hits'], s['persistent_misses'], s['persistent_hits'])"


def test_in_sync_mode_eager_keys_are_on_the_python_side(tmp_path: Path) -> None:
    programs = {"eager": ADD + PRINT, "compiled": ADD + COMPILED + PRINT}
    found = outcomes(tmp_path, programs, NEURON_LAUNCH_BLOCKING="1")
    assert found["eager"]["ops"] == ["contiguous", "neg"]
    assert found["eager"]["prints"] == "0 0 0 0 0\n"
    # Of a compiled graph one miss, and a hit for each of its two executions.
    assert found["compiled"]["prints"] == "1 1 2 1 0\n"


def test_the_counters_move_from_the_start_where_the_environment_says_so(tmp_path: Path) -> None:
    program = "from torch_neuronx import metrics; x + y; x + y" + PRINT + "; print(metrics.is_enabled())"
    found = outcomes(tmp_path, {"add": program}, TORCH_NEURONX_METRICS_ENABLED="1")
    assert found["add"]["prints"] == "1 1 1 1 0\nTrue\n"


def test_in_sync_mode_the_folder_is_flat(tmp_path: Path) -> None:
    folder = tmp_path / "neffs"
    environ = {"NEURON_LAUNCH_BLOCKING": "1", "TORCH_NEURONX_NEFF_CACHE_DIR": str(folder)}
    outcomes(tmp_path, {"add": "x + y"}, **environ)
    [file] = folder.rglob("*.neff")
    assert len(file.stem) == 64
    assert file.parent == folder / file.stem


def test_without_the_python_side_cache_every_call_asks_the_disk(tmp_path: Path) -> None:
    environ = {"NEURON_LAUNCH_BLOCKING": "1", "TORCH_NEURONX_DISABLE_NEFF_CACHE": "1"}
    found = outcomes(tmp_path, {"add": "x + y; x + y; x + y"}, **environ)
    compiles = [event for event in found["events"] if event["type"] == "compile"][-3:]
    assert [(event["op"], event["outcome"]) for event in compiles] == [
        ("add.Tensor", "compiled"),
        ("add.Tensor", "disk"),
        ("add.Tensor", "disk"),
    ]


def test_without_a_persistent_cache_its_counters_never_move(tmp_path: Path) -> None:
    program = ADD + "; _C._clear_compilation_memory_cache(); torch.neg(x.t())" + PRINT
    found = outcomes(tmp_path, {"neg": program}, TORCH_NEURONX_NEFF_DISABLE_CACHE="1")
    assert found["neg"]["prints"] == "1 2 1 0 0\n"
    assert found["neg"]["ops"] == ["neg", "neg"]


def test_another_process_finds_what_lies_in_the_named_folder(tmp_path: Path) -> None:
    folder = tmp_path / "neffs"
    environ = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(folder), "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR": str(tmp_path / "l")}
    program = ADD + COMPILED + PRINT
    first = outcomes(tmp_path, {"add": program}, **environ)["add"]
    # The runner clears disk and memory before each program: what is left is what the first one compiled.
    assert first["prints"] == "2 2 3 2 0\n"
    files = sorted(folder.rglob("*.neff"))
    assert len(files) == 2
    assert all(file.read_bytes().startswith(SIMULATED) for file in files)
    locks = [file.stem for file in (tmp_path / "l" / "locks").iterdir()]
    assert {file.stem for file in files} <= set(locks)
    second = outcomes(
        tmp_path, {"add": program.replace("metrics;", "metrics; _C._clear_compilation_memory_cache();")}, **environ
    )
    assert second["add"]["graphs"][-1] == ["inference", "compiled"], "the runner cleared the folder"


def test_a_later_run_finds_the_folder_and_says_disk(tmp_path: Path, on_device: RunOnDevice) -> None:
    program = (
        "import torch\nx = torch.ones(4).to('neuron')\nx + x\ntorch.compile(lambda x: x * 3, backend='neuron')(x)\n"
    )
    folder = tmp_path / "neffs"
    environ = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(folder), "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR": str(folder)}
    outcome = []
    for _ in range(2):
        _, events = on_device(program, **environ)
        outcome.append([event["outcome"] for event in events if event["type"] == "compile"])
    assert outcome == [["compiled", "compiled", "compiled"], ["disk", "compiled", "disk"]]
    # Without the variable nothing that lies anywhere changes a count.
    _, events = on_device(program)
    assert [event["outcome"] for event in events if event["type"] == "compile"] == ["compiled"] * 3


def test_concatenation_is_said_and_not_counted(on_device: RunOnDevice) -> None:
    program = "import torch\nx = torch.ones(4).to('neuron')\nx + x\nx @ x\n"
    _, events = on_device(program, TORCH_NEURONX_ENABLE_CONCATENATION="1")
    assert [event["op"] for event in events if event["type"] == "compile"] == ["add.Tensor", "dot"]
    assert [event["code"] for event in events if event["type"] == "problem"] == ["concatenation"]


def test_the_second_shape_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    program = "f = torch.compile(lambda x: x * 3, backend='neuron'); f(x); f(x[:2])"
    found = outcomes(tmp_path, {"two": program}, SHAPEGUARD_SIM_SECOND_SHAPE="fail")["two"]
    assert "Dynamic shapes detected" in found["error"]
    assert found["graphs"] == [["region", "compiled"], ["inference", "compiled"], ["region", "failed"]]


def test_a_region_that_is_refused_runs_by_operators_where_that_is_allowed(tmp_path: Path) -> None:
    program = "f = torch.compile(lambda x: (x * 3).sin(), backend='neuron', dynamic=True); print(f(x).shape)"
    by_option = program.replace("dynamic=True", "dynamic=True, options={'fallback_execution': False}")
    found = outcomes(tmp_path, {"run": program, "no": by_option}, TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION="0")
    assert found["run"]["graphs"] == [["region", "failed"]]
    assert found["run"]["ops"] == ["mul.Tensor", "sin"]
    assert found["run"]["prints"] == "torch.Size([4, 8])\n"
    assert "Dynamic shapes detected" in found["no"]["error"]


@pytest.mark.parametrize(
    ("name", "prints", "error"),
    [
        ("TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY", "", "TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY=1 forbids"),
        ("TORCH_NEURONX_RETAIN_DEVICE_MODE", "cpu\n", ""),
    ],
)
def test_host_inputs_can_be_refused_or_answered_on_the_host(name: str, prints: str, error: str, tmp_path: Path) -> None:
    program = "f = torch.compile(lambda x: x * 3, backend='neuron'); print(f(torch.ones(3)).device.type)"
    found = outcomes(tmp_path, {"host": program}, **{name: "1"})["host"]
    assert found["prints"] == prints
    assert error in found["error"]


@pytest.mark.parametrize("is_module", [True, False])
def test_steps_go_on_after_the_recompile_limit(is_module: bool, on_device: RunOnDevice) -> None:
    what = "nn.Sigmoid()" if is_module else "lambda x: (x * 2).sigmoid()"
    program = (
        "import torch\nfrom torch import nn\ntorch._dynamo.config.recompile_limit = 3\n"
        f"f = torch.compile({what}, backend='neuron')\n"
        "with torch.no_grad():\n    for n in range(2, 9):\n        f(torch.ones(n).to('neuron'))\n"
    )
    _, events = on_device(program)
    assert [event["step"] for event in events if event["type"] == "step"] == list(range(1, 8))
    late = [event for event in events if event["type"] == "compile" and event["kind"] == "eager"]
    # Each later size is a graph of each operator.
    assert [event["step"] for event in late if event["op"].startswith("sigmoid")] == [4, 5, 6, 7]
    assert [event["step"] for event in late if event["op"].startswith("mul")] == ([] if is_module else [4, 5, 6, 7])


def test_the_table_of_graphs_is_written_at_exit(tmp_path: Path) -> None:
    program = "torch.compile(lambda x: x * 3, backend='neuron')(x)"
    outcomes(
        tmp_path,
        {"one": program},
        TORCH_NEURONX_ENABLED_METRIC_TABLES="graph_stats",
        TORCH_NEURONX_METRICS_DIR=str(tmp_path),
        RANK="0",
    )
    with (tmp_path / "metric_table_graph_stats_rank0.csv").open() as file:
        [row] = csv.DictReader(file)
    assert row["graph_name"].startswith("model_default_")
    with pytest.raises(AssertionError, match="ValueError: unknown metric table 'other'"):
        outcomes(tmp_path, {}, TORCH_NEURONX_ENABLED_METRIC_TABLES="other")
