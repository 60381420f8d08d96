"""Files in which no rule can speak are answered before click is there; the answer is the command's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shapeguard.cli.quick import is_answered

CLEAN = "import os\n\n\ndef f(x):\n    return os.path.join(x)\n"
BAD = 'from transformers import AutoModel\n\nmodel = AutoModel.from_pretrained("x", device_map="auto")\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SHAPEGUARD_OUTPUT_FORMAT", "SHAPEGUARD_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "stub.pyi").write_text("def f(x: int) -> int: ...\n")
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "hushed.py").write_text("x = 1  # shapeguard: ignore[SG101] nothing here\n")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["clean.py"],
        ["clean.py", "stub.pyi"],
        ["clean.py", "./clean.py", "-q"],
        ["--isolated", "--no-cache", "clean.py", "--force-exclude"],
    ],
)
def test_clean_files_are_answered_as_the_command_answers(folder, shapeguard, capsysbinary, arguments):
    of_command = shapeguard("lint", *arguments)
    assert is_answered(arguments)
    assert (0, capsysbinary.readouterr().out.decode()) == (of_command.code, of_command.out)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["."],
        ["-"],
        ["bad.py"],
        ["clean.py", "bad.py"],
        ["broken.py"],
        ["hushed.py"],
        ["missing.py"],
        ["clean.py", "--json"],
        ["clean.py", "--statistics"],
        ["clean.py", "--with-run", "run"],
        ["--", "clean.py"],
    ],
)
def test_all_else_is_left_to_the_command(folder, capsys, arguments):
    assert not is_answered(arguments)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text",
    [
        'output-format = "json"\n',
        '[lint]\nbaseline = "known.json"\n',
        "[lint]\nfix = true\n",
        "nonsense = 1\n",
    ],
)
def test_a_configuration_that_asks_for_more_is_left_to_the_command(folder, text):
    (folder / "shapeguard.toml").write_text(text)
    assert not is_answered(["clean.py"])
    assert is_answered(["clean.py", "--isolated"])


def test_an_excluded_file_is_left_to_the_command(folder):
    (folder / "shapeguard.toml").write_text('[lint]\nextend-exclude = ["clean.py"]\n')
    assert is_answered(["clean.py"])
    assert not is_answered(["clean.py", "--force-exclude"])


def test_a_format_in_the_environment_is_left_to_the_command(folder, monkeypatch):
    monkeypatch.setenv("SHAPEGUARD_OUTPUT_FORMAT", "json")
    assert not is_answered(["clean.py"])


def test_the_program_needs_no_click_for_a_clean_file(folder):
    code = (
        "import sys, runpy; sys.argv = ['shapeguard', 'lint', 'clean.py']; "
        "runpy.run_module('shapeguard', run_name='__main__'); "
        "sys.exit(str(sorted({'click', 'libcst', 'torch', 'shapeguard.core.report'} & set(sys.modules))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr.strip()) == ("No findings in 1 file.\n", "[]")
