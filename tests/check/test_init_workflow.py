"""`init`, and the workflow that it writes, run step by step as a script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from sample import copied, run

from tests.conftest import REPOSITORY

PROGRAM = "import torch\nif __name__ == '__main__':\n    print(torch.ones(1))\n"


def steps(folder: Path) -> list[dict[str, str]]:
    workflow = yaml.safe_load((folder / ".github/workflows/shapeguard.yml").read_text())
    assert list(workflow["jobs"]) == ["shapeguard"]
    job = workflow["jobs"]["shapeguard"]
    assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    return [{"run": step["run"], "env": job["env"]} for step in job["steps"] if "run" in step]


def as_runner(folder: Path, step: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does: bash, stopping at the first error, CI set; what is installed stays as it is."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **step["env"], "CI": "true", "PATH": path, "PIP_NO_INDEX": "1"}
    env |= {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "SHAPEGUARD_NO_CACHE": "1"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_the_workflow_that_init_writes_passes_on_the_sample_project_and_fails_when_it_must(locked, tmp_path):
    folder = Path(shutil.copytree(locked, tmp_path / "project", ignore=shutil.ignore_patterns(".shapeguard")))
    assert run(folder, "init", "--yes").returncode == 0
    install, lint, check = steps(folder)
    for step in (install, lint, check):
        ran = as_runner(folder, step)
        assert ran.returncode == 0, (step["run"], ran.stdout, ran.stderr)
    assert (folder / "locked.txt").read_text().startswith("torch==")
    assert "| train graphs | 2 | 2 | 0 | ok |" in (folder / "summary.md").read_text()
    assert (folder / "shapeguard-lint.sarif").is_file() and (folder / "shapeguard-check.sarif").is_file()
    train = folder / "train.py"
    train.write_text(train.read_text().replace(", drop_last=True", ""))
    lint_ran, check_ran = as_runner(folder, lint), as_runner(folder, check)
    assert (lint_ran.returncode, check_ran.returncode) == (1, 1)
    assert "title=shapeguard (SG304),file=train.py,line=18" in lint_ran.stdout
    assert "title=shapeguard (new-graph),file=train.py,line=18" in check_ran.stdout
    assert "ids dim 0: 4, then 2 in the last batch of each epoch" in check_ran.stdout


def test_a_lock_made_in_two_folders_under_two_user_names_is_the_same_bytes(locked, tmp_path):
    folder = copied(tmp_path / ("a" * 40) / "another")
    home = tmp_path / "grace"
    home.mkdir()
    ran = run(folder, "lock", USER="grace", LOGNAME="grace", HOME=str(home), PYTHONHASHSEED="7", TZ="Asia/Tokyo")
    assert ran.returncode == 0, ran.stderr
    made = (folder / "shapeguard.lock").read_bytes()
    assert made == (locked / "shapeguard.lock").read_bytes()
    assert made.count(b"[[graph]]") == 3
    for word in (b"grace", str(tmp_path).encode(), str(locked).encode()):
        assert word not in made


def test_init_finds_the_programs_and_writes_what_passes_its_own_checks(shapeguard):
    Path("scripts").mkdir()
    for name in ("train.py", "scripts/train.py", "scripts/merge.py"):
        Path(name).write_text(PROGRAM)
    Path("helper.py").write_text("import torch\n")
    Path("tool.py").write_text("if __name__ == '__main__':\n    print(1)\n")
    ran = shapeguard("init", "--yes", "--package", "git+ssh://git@example.org/x.git")
    assert ran.code == 0
    jobs = tomllib.loads(Path("shapeguard.toml").read_text())["jobs"]
    assert {name: job["command"] for name, job in jobs.items()} == {
        "train": ["train.py"],
        "scripts-merge": ["scripts/merge.py"],
        "scripts-train": ["scripts/train.py"],
    }
    assert (
        'SHAPEGUARD_PACKAGE: "git+ssh://git@example.org/x.git"' in Path(".github/workflows/shapeguard.yml").read_text()
    )
    hooks = yaml.safe_load(Path(".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == ["shapeguard lint --force-exclude", "shapeguard check --static"]
    assert Path(".gitattributes").read_text() == "shapeguard.lock merge=shapeguard\n"
    assert shapeguard("config").code == 0


def test_init_overwrites_nothing(shapeguard):
    there = {
        "pyproject.toml": "[tool.shapeguard.lint]\nneuron = 'auto'",
        ".pre-commit-config.yaml": "repos: []\n",
        ".github/workflows/shapeguard.yml": "name: mine\n",
        ".gitattributes": "*.bin binary",
    }
    Path(".github/workflows").mkdir(parents=True)
    for name, text in there.items():
        Path(name).write_text(text)
    Path("train.py").write_text(PROGRAM)
    ran = shapeguard("init", "--yes")
    assert ran.code == 0
    for name, text in there.items():
        assert Path(name).read_text().startswith(text)
    assert Path(".pre-commit-config.yaml").read_text() == "repos: []\n"
    assert "kept .pre-commit-config.yaml: it is yours; add to its `repos`:\n  - repo: local" in ran.out
    assert Path(".gitattributes").read_text() == "*.bin binary\nshapeguard.lock merge=shapeguard\n"
    table = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["shapeguard"]
    assert (table["lint"], list(table["jobs"])) == ({"neuron": "auto"}, ["train"])
    assert not Path("shapeguard.toml").exists()
    before = {name: Path(name).read_text() for name in there}
    assert shapeguard("init", "--yes").code == 0
    assert {name: Path(name).read_text() for name in there} == before


def test_init_in_a_folder_of_a_repository_writes_hooks_and_workflow_at_its_top(shapeguard, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "models" / "my llama"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "requirements.txt").write_text("")
    monkeypatch.chdir(folder)
    assert shapeguard("init", "--yes").code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitattributes", "requirements.txt", "shapeguard.toml", "train.py"
    ]  # fmt: skip
    (workflow,) = (tmp_path / ".github/workflows").iterdir()
    assert workflow.name == "shapeguard-models-my-llama.yml"
    install, lint, check = [
        step["run"] for step in yaml.safe_load(workflow.read_text())["jobs"]["shapeguard"]["steps"] if "run" in step
    ]
    assert "lock --requirements --config 'models/my llama/shapeguard.toml'" in install
    assert "-r 'models/my llama/requirements.txt' -r locked.txt" in install
    assert lint.startswith("shapeguard lint 'models/my llama' --output-format github")
    assert check.startswith("shapeguard check --config 'models/my llama/shapeguard.toml' --output-format github")
    hooks = yaml.safe_load((tmp_path / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert hooks[1]["entry"] == "shapeguard check --static --config 'models/my llama/shapeguard.toml'"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    ran = shapeguard("init", "--yes")
    assert "kept ../.pre-commit-config.yaml: it is yours; add to its `repos`:" in ran.out
    assert "check --static --config other/shapeguard.toml" in ran.out
    monkeypatch.chdir(tmp_path)
    Path("shapeguard.lock").write_text("schema = 9\n")
    ran = shapeguard("check", "--static", "--config", "models/my llama/shapeguard.toml")
    assert "there is no models/my llama/shapeguard.lock" in ran.err


def test_init_that_cannot_write_a_file_says_what_it_has_written(shapeguard):
    Path(".github").write_text("a file")
    ran = shapeguard("init", "--yes")
    assert (ran.code, ran.err) == (
        2,
        "error: cannot write .github/workflows/shapeguard.yml: Not a directory\n"
        "hint: written before: shapeguard.toml, .pre-commit-config.yaml\n",
    )


def test_init_keeps_line_ends_and_gives_plain_names(shapeguard):
    Path("pyproject.toml").write_bytes(b'[tool.shapeguard.lint]\r\nneuron = "auto"\r\n')
    Path("über.py").write_text(PROGRAM)
    assert shapeguard("init", "--yes").code == 0
    data = Path("pyproject.toml").read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n")
    jobs = tomllib.loads(data.decode())["tool"]["shapeguard"]["jobs"]
    assert {name: job["command"] for name, job in jobs.items()} == {"uber": ["über.py"]}


def test_init_leaves_a_table_alone_that_cannot_be_added_to(shapeguard):
    text = "[tool]\nshapeguard = { lint = { neuron = 'auto' } }\n"
    Path("pyproject.toml").write_text(text)
    Path("train.py").write_text(PROGRAM)
    ran = shapeguard("init", "--yes")
    assert (ran.code, Path("pyproject.toml").read_text()) == (0, text)
    assert "kept pyproject.toml: it is yours; add to it:\n[tool.shapeguard.jobs.train]" in ran.out


def test_init_asks_or_says_how_not_to_be_asked(shapeguard):
    Path("train.py").write_text(PROGRAM)
    ran = shapeguard("init")
    assert (ran.code, "there is nobody to ask\nhint: use --yes" in ran.err) == (2, True)
    ran = shapeguard("init", "--dry-run")
    assert (ran.code, [path.name for path in Path().iterdir()]) == (0, ["train.py"])
    assert "would write shapeguard.toml" in ran.out
    assert shapeguard("init", "--yes", "--package", 'x"; rm -rf /').code == 2


@pytest.mark.parametrize("name", ["action.yml"])
def test_the_action_hands_inputs_over_as_variables_only(name):
    action = yaml.safe_load((REPOSITORY / name).read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        ran = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
