"""The hooks that users install, tried from the working tree as pre-commit runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
BAD = 'from transformers import AutoModel\n\nmodel = AutoModel.from_pretrained("x", device_map="auto")\n'
UNUSED = "x = 1  # shapeguard: ignore[SG101]\n"


@pytest.fixture(scope="module")
def hooks(tmp_path_factory) -> Path:
    """The working tree as a repository of its own: what is not committed yet is tried too."""
    folder = tmp_path_factory.mktemp("hooks")
    for name in ("shapeguard", "pyproject.toml", "README.md", ".pre-commit-hooks.yaml"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    for command in (["init", "-q"], ["add", "-A"], [*AUTHOR, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


AUTHOR = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]


def try_hook(hooks: Path, folder: Path, home: Path, hook: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull}
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), hook, "--all-files", "--verbose"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_hooks_find_and_mend(hooks, tmp_path, tmp_path_factory):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "shapeguard.toml").write_text('[lint]\nextend-exclude = ["gen/"]\n')
    (tmp_path / "a.py").write_text(BAD)
    (tmp_path / "gen").mkdir()
    (tmp_path / "gen" / "b.py").write_text(BAD)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    home = tmp_path_factory.mktemp("home")
    ran = try_hook(hooks, tmp_path, home, "shapeguard")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "SG101" in ran.stdout
    assert "a.py:3:51" in ran.stdout
    assert "gen/b.py" not in ran.stdout
    (tmp_path / "a.py").write_text(UNUSED)
    ran = try_hook(hooks, tmp_path, home, "shapeguard-fix")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


def test_the_hooks_say_what_the_conventions_ask():
    import yaml

    listed = {hook["id"]: hook for hook in yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())}
    assert set(listed) == {"shapeguard", "shapeguard-fix", "shapeguard-lock"}
    assert listed["shapeguard"]["types_or"] == ["python", "pyi", "jupyter"]
    assert all(hook["minimum_pre_commit_version"] == "3.2.0" for hook in listed.values())
