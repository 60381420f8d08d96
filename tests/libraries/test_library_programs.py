"""Programs of the libraries that people use run unchanged on the device, and do what they do on the CPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.tracing import REPOSITORY, SCRIPTS, trace

PROGRAMS = REPOSITORY / "fixtures" / "libraries"
# The share of CI, about 40 s with TRL below; all others run with `-m soak`.
CI_SHARE = {("accelerate_loop", "cpu"), ("amp_and_average", "meta"), ("safetensors_files", "cpu"), ("workers", "meta")}
# Small models and a tokenizer for the programs; and nothing is looked for on the network.
ENVIRON = {"PYTHONPATH": str(SCRIPTS), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
CASES = [
    pytest.param(path.stem, inner, marks=[] if (path.stem, inner) in CI_SHARE else [pytest.mark.soak])
    for path in sorted(PROGRAMS.glob("*.py"))
    for inner in ("cpu", "meta")
]
_FRACTION = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|\bnan\b|\binf\b")


@pytest.mark.parametrize(("name", "inner"), CASES)
def test_a_program_prints_what_it_prints_without_the_device(name: str, inner: str, tmp_path: Path) -> None:
    plain = subprocess.run(
        [sys.executable, PROGRAMS / f"{name}.py"],
        env={**os.environ, **ENVIRON}, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert plain.returncode == 0, plain.stderr[-3000:]
    traced = trace(tmp_path, PROGRAMS / f"{name}.py", "--inner", inner, **ENVIRON)
    assert traced.code == 0, traced.report
    assert words(traced.out) == words(plain.stdout)
    if inner == "cpu":
        assert fractions(traced.out) == pytest.approx(fractions(plain.stdout), abs=1e-2)
    # It ran on the device, not beside it.
    assert traced.summary["totals"]["eager"] > 0
    assert "ran on the CPU" not in traced.report


def lines(printed: str) -> list[str]:
    """Give what the program itself printed, without the libraries' own rows, in which there are times."""
    return [line for line in printed.splitlines() if not line.startswith(("{", "padded to"))]


def words(printed: str) -> list[str]:
    """Give all but the fractions, which under `--inner meta` are zeros: words, whole numbers, shapes."""
    return [_FRACTION.sub("~", line) for line in lines(printed)]


def fractions(printed: str) -> list[float]:
    """Give the fractions of all lines."""
    return [float(found) for line in lines(printed) for found in _FRACTION.findall(line)]


def test_trl_pads_to_128_for_neuron(tmp_path: Path) -> None:
    """TRL itself looks for the device; its rows of 21 to 31 tokens would else be one shape each."""
    program = (
        "from datasets import Dataset\n"
        "from tiny import lines, llama, tokenizer\n"
        "from trl import SFTConfig, SFTTrainer\n"
        "arguments = SFTConfig(output_dir='out', report_to='none', bf16=False, disable_tqdm=True)\n"
        "data = Dataset.from_dict({'text': lines()[:8]})\n"
        "trainer = SFTTrainer(llama(), arguments, train_dataset=data, processing_class=tokenizer('right'))\n"
        "print({batch['input_ids'].shape[1] for batch in trainer.get_train_dataloader()})\n"
    )
    traced = trace(tmp_path, program, **ENVIRON)
    assert traced.out.splitlines()[-1:] == ["{128}"], traced.report
