"""Every bad program of `fixtures/scripts`: lint finds it, its fixes mend it, and then its trace is quiet."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trace.tracing import REPOSITORY, SCRIPTS, Traced, trace

FOUND = {
    "accelerate_ragged": {"SG301", "SG304"},
    "classify_longest": {"SG301"},
    "generate_growing_budget": {"SG203"},
    "generate_on_device": {"SG201"},
    "load_auto": {"SG101"},
    "loop_ragged": {"SG302", "SG304"},
    "pipeline_without_device": {"SG102"},
    "train_ragged": {"SG302", "SG304"},
}
GOOD = sorted(
    path.stem for path in SCRIPTS.glob("*.py") if path.stem not in FOUND and path.stem not in ("tiny", "embed_minilm")
)
LENGTHS = "[[lint.lengths]]\ntrain = 48\nprompt = 32\ncache = 64\n"
"""The rows of the programs are 40 tokens at most; a prompt of 16 and 12 new tokens need a cache of 28."""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A copy of the programs with what they read, and lengths for the fixes."""
    for part in ("scripts", "texts"):
        shutil.copytree(REPOSITORY / "fixtures" / part, tmp_path / part)
    (tmp_path / "shapeguard.toml").write_text(LENGTHS)
    return tmp_path / "scripts"


def lint(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shapeguard", "lint", "--no-cache", "--output-format", "concise", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def codes(done: subprocess.CompletedProcess[str]) -> set[str]:
    return {word for line in done.stdout.splitlines() for word in line.split() if word.startswith("SG")}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_a_bad_program_is_found_mended_and_then_quiet(name: str, scripts: Path) -> None:
    program = scripts / f"{name}.py"
    found = lint(program.name, cwd=scripts)
    assert found.returncode == 1, found.stderr
    assert codes(found) == FOUND[name]
    mended = lint("--fix", "--unsafe-fixes", program.name, cwd=scripts)
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert program.read_text() != (SCRIPTS / program.name).read_text()
    # A pipeline moves its inputs to the device by itself; there the cure is another call, which no fix writes.
    check_quiet(trace(scripts, program), may_grow=name == "pipeline_without_device")


def check_quiet(run: Traced, *, may_grow: bool = False) -> None:
    assert run.code == 0, run.report
    assert run.summary["totals"]["after_warmup"]["regions"] == 0, run.report
    growing = {row["op"] for row in run.summary["eager_ops"] if row["growing"]}
    assert may_grow or "cat" not in growing, run.report
    assert not run.summary["placement"], run.report


@pytest.mark.parametrize("name", ["generate_on_device", "load_auto", "loop_ragged"])
def test_the_trace_would_not_be_quiet_without_the_fix(name: str, scripts: Path) -> None:
    with pytest.raises(AssertionError):
        check_quiet(trace(scripts, scripts / f"{name}.py"))


def test_the_good_programs_have_no_findings(scripts: Path) -> None:
    names = [f"{name}.py" for name in GOOD]
    done = lint(*names, cwd=scripts)
    assert done.returncode == 0, done.stdout
