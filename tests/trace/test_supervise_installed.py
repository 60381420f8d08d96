"""The simulated device beside a real torch_neuronx: a made-up wheel that would end the program if torch loaded it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import importlib.metadata, sys
import torch
import torch_neuronx
print(importlib.metadata.version("torch-neuronx"))
print(torch_neuronx.__file__)
print([e.value for e in importlib.metadata.entry_points(group="torch.backends")])
print(torch.ones(2, device="neuron").device)
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Unpack what `pip install --target` would: a package, its metadata and its entry points."""
    target = tmp_path / "installed"
    package = target / "torch_neuronx"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the installed torch_neuronx was loaded')\n")
    metadata = target / "torch_neuronx-2.13.3.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-neuronx\nVersion: 2.13.3.0\n")
    (metadata / "entry_points.txt").write_text(
        "[torch.backends]\ntorch_neuronx = torch_neuronx:_autoload\n"
        "[torch_dynamo_backends]\nneuron = torch_neuronx.neuron_dynamo_backend:neuron_backend\n"
    )
    return target


def trace(folder: Path, *words: str, installed: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shapeguard", "trace", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("form", [("program.py",), ("--", sys.executable, "program.py")])
def test_the_simulated_device_hides_an_installed_torch_neuronx_and_says_so(
    tmp_path: Path, wheel: Path, form: tuple[str, ...]
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = trace(tmp_path, *form, installed=wheel)
    assert done.returncode == 0, done.stderr
    version, file, entries, device = done.stdout.splitlines()
    assert "shapeguard" in version
    assert "/neuron/sim/site/" in file
    assert entries == "['torch_neuronx:_autoload']"
    assert device == "neuron:0"
    assert done.stderr.startswith(
        "note: the simulated device hides the installed torch_neuronx 2.13.3.0 from this program\n"
    )


def test_without_one_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    done = trace(tmp_path, "program.py", installed=tmp_path)
    assert "hides" not in done.stderr


def test_a_real_device_that_is_asked_for_is_not_simulated_in_silence(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "program.py").write_text("print('must not run')")
    done = trace(tmp_path, "--device", "neuron", "program.py", installed=wheel)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "error: torch_neuronx 2.13.3.0 is installed, but the driver shows no Neuron device\n"
        "hint: use --device sim, or see `shapeguard doctor`\n"
    )
