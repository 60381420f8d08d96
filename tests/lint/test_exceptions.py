"""What rules leave alone, with a fault beside it: found, mended, and traced before and after the fix."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lint.test_closed_loop import LENGTHS, codes, lint
from tests.trace.tracing import REPOSITORY, trace

PROGRAMS = REPOSITORY / "fixtures" / "lint" / "exceptions"
KEPT = {
    "also_a_forward": "truncation=True).to(model.device)",
    "encoder_inputs": ").to(model.device)",
    "evaluation_loader": "DataLoader(eval_rows, batch_size=4)",
    "one_row": 'tok("The harbour town woke", padding=True, return_tensors="pt").to("neuron")',
    "pixel_values": "torch.randn(1, 3, 16, 16).to(model.device)",
}
"""The code that no fix may touch."""
FOUND = {
    "also_a_forward": {"SG202"},
    "encoder_inputs": {"SG301"},
    "evaluation_loader": {"SG304"},
    "one_row": {"SG301"},
    "pixel_values": {"SG202"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs, what they import and read, and lengths for the fixes."""
    for part in ("scripts", "texts"):
        shutil.copytree(REPOSITORY / "fixtures" / part, tmp_path / part)
    for file in PROGRAMS.glob("*.py"):
        shutil.copy(file, tmp_path / "scripts")
    (tmp_path / "shapeguard.toml").write_text(LENGTHS)
    return tmp_path / "scripts"


def test_every_program_says_what_is_kept_in_it() -> None:
    assert {file.stem for file in PROGRAMS.glob("*.py")} == set(KEPT) == set(FOUND)


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_fix_mends_the_fault_and_leaves_the_exception(name: str, folder: Path) -> None:
    program = folder / f"{name}.py"
    assert codes(lint(program.name, cwd=folder)) == FOUND[name]
    mended = lint("--fix", "--unsafe-fixes", program.name, cwd=folder)
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert KEPT[name] in program.read_text() != (PROGRAMS / program.name).read_text()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "evaluation_loader" else pytest.mark.soak) for name in sorted(KEPT)],
)
def test_a_program_with_an_exception_runs_before_and_is_quiet_after_the_fix(name: str, folder: Path) -> None:
    program = folder / f"{name}.py"
    before = trace(folder, program)
    (folder / "run").rename(folder / "before")
    lint("--fix", "--unsafe-fixes", program.name, cwd=folder)
    after = trace(folder, program)
    assert (before.code, after.code) == (0, 0), before.report + after.report
    assert after.summary["totals"]["after_warmup"]["regions"] == 0, after.report
    assert not after.summary["placement"], after.report


@pytest.mark.soak
@pytest.mark.parametrize("name", ["encoder_inputs", "pixel_values"])
def test_without_the_move_that_a_rule_leaves_alone_the_program_fails(name: str, folder: Path) -> None:
    program = folder / f"{name}.py"
    program.write_text(program.read_text().replace(".to(model.device)", ""))
    run = trace(folder, program)
    assert run.code != 0 or run.summary["placement"] or run.summary["totals"]["fallback_ops"], run.report
