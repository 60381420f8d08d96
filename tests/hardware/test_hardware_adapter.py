"""The adapter for hardware, on a stand-in for torch_neuronx: what it writes down is what the simulated tracer does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hardware.compare import differences, lines
from tests.hardware.standin_run import METRICS, READERS, SMALL, SUBMIT, run

SCRIPTS = Path(__file__).parent.parent.parent / "fixtures" / "scripts"
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    folder, _ = run(tmp_path_factory.mktemp("sim") / "small", SMALL, "sim")
    return lines(folder)


def test_the_same_lines_are_written_in_async_mode(simulated: Lines, tmp_path: Path) -> None:
    folder, report = run(tmp_path / "real", SMALL, "neuron")
    assert differences(simulated, lines(folder)) == []
    assert "Measured on the device (torch_neuronx 2.14.3, async). The adapter was never tried on Trainium" in report
    assert "eager: _C._submit_xla_task_to_pipeline" in report
    assert "missing in this torch_neuronx" not in report
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["device"]["kind"] == "real"
    assert summary["device"]["toolchain"]["torch-neuronx"] == "2.14.3"


def test_the_same_lines_are_written_in_sync_mode(tmp_path: Path) -> None:
    mode = {"NEURON_LAUNCH_BLOCKING": "1"}
    simulated, _ = run(tmp_path / "sim", SMALL, "sim", **mode)
    real, report = run(tmp_path / "real", SMALL, "neuron", **mode)
    assert differences(lines(simulated), lines(real)) == []
    assert ", sync)" in report


def test_without_the_submit_call_eager_keys_are_the_models_and_marked_so(simulated: Lines, tmp_path: Path) -> None:
    check_without(simulated, SUBMIT, SMALL, tmp_path)


def test_with_every_reader_gone_nothing_is_claimed_that_was_not_seen(simulated: Lines, tmp_path: Path) -> None:
    folder, report = run(tmp_path / "bare", SMALL, "neuron", STANDIN_WITHOUT=" ".join(READERS))
    real = lines(folder, without=("name", "certainty"))
    assert keys(real) == keys(simulated)
    assert "outcomes: none: all count as compiled" in report
    assert "it is not known whether they came from disk" in report
    for name in READERS:
        assert name in report


@pytest.mark.soak
def test_ci_share_what_came_from_disk_is_told_from_what_was_compiled(tmp_path: Path) -> None:
    disk = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "neffs")}
    cold, _ = run(tmp_path / "cold", SMALL, "neuron", **disk)
    warm, _ = run(tmp_path / "warm", SMALL, "neuron", **disk)
    assert {row["outcome"] for row in lines(cold) if row["type"] == "compile"} == {"compiled"}
    outcomes = {row["outcome"] for row in lines(warm) if row["type"] == "compile" and row["kind"] != "region"}
    assert outcomes == {"disk"}
    assert json.loads((warm / "summary.json").read_text())["totals"]["disk"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["graph", "eager"])
def test_ci_share_forbidden_compiles_raise_and_what_lies_on_disk_does_not(kind: str, tmp_path: Path) -> None:
    lines_of = {"graph": "torch.compile(lambda a: (a * 2).sum(), backend='neuron')(x)", "eager": "x + 1"}
    program = tmp_path / "program.py"
    program.write_text(f"import torch\nx = torch.randn(2, 4).to('neuron')\n{lines_of[kind]}\n")
    disk = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "neffs")}
    forbidden = {**disk, "SHAPEGUARD_FORBID_COMPILES": "1"}
    _, report = run(tmp_path / "cold", program, "neuron", code=1, **forbidden)
    assert "compiling is forbidden here" in report
    run(tmp_path / "filling", program, "neuron", **disk)
    run(tmp_path / "warm", program, "neuron", **forbidden)


@pytest.mark.soak
@pytest.mark.parametrize("reader", READERS)
def test_each_reader_can_be_missing(reader: str, simulated: Lines, tmp_path: Path) -> None:
    check_without(simulated, reader, SMALL, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.py")))
def test_every_script_gives_the_same_lines_whatever_reader_is_missing(name: str, tmp_path: Path) -> None:
    script = SCRIPTS / f"{name}.py"
    folder, _ = run(tmp_path / "sim", script, "sim")
    simulated = lines(folder)
    real, _ = run(tmp_path / "real", script, "neuron")
    assert differences(simulated, lines(real)) == []
    for reader in READERS:
        check_without(simulated, reader, script, tmp_path / reader)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["loop_ragged"])
def test_ci_share_of_scripts(name: str, tmp_path: Path) -> None:
    simulated, _ = run(tmp_path / "sim", SCRIPTS / f"{name}.py", "sim")
    real, _ = run(tmp_path / "real", SCRIPTS / f"{name}.py", "neuron")
    assert differences(lines(simulated), lines(real)) == []


def check_without(simulated: Lines, reader: str, program: Path, folder: Path) -> None:
    """Nothing may differ but what the reader alone can tell, and the report must name it."""
    real, report = run(folder / "without", program, "neuron", STANDIN_WITHOUT=reader)
    assert f"missing in this torch_neuronx: {reader}" in report
    if reader == SUBMIT:
        found = lines(real)
        assert keys(found) == keys(simulated)
        assert all(row["certainty"] == "±" for row in found if row.get("kind") == "eager")
        has_eager = any(row.get("kind") == "eager" for row in simulated)
        assert "counted from the calls that the program made" in report or not has_eager
    else:
        left_out = ("name",) if reader == METRICS else ()
        assert differences(without(simulated, left_out), lines(real, without=left_out)) == []


def without(rows: Lines, names: tuple[str, ...]) -> Lines:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def keys(rows: Lines) -> set[tuple[str, str, str]]:
    return {(row["kind"], row.get("op") or "", row["key"]) for row in rows if row["type"] == "compile"}
