"""What the README promises: its two commands, its links, its examples; and that the base needs no torch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()


def test_the_first_screen_has_the_two_commands() -> None:
    commands = re.findall(r"^python -m pip install.*$", README, re.MULTILINE)[:2]
    assert commands[0].endswith("shapeguard trace fixtures/scripts/train_ragged.py")
    assert commands[1].endswith("python -m pytest -n 2")
    assert README.split("\n").index(commands[1]) < 24


def test_ci_runs_the_readmes_test_command() -> None:
    pattern = re.search(r"sed -n '(.*)' README.md", (REPOSITORY / ".ci" / "run").read_text())
    assert pattern is not None
    found = subprocess.run(["sed", "-n", pattern[1], "README.md"], cwd=REPOSITORY, capture_output=True, text=True)
    assert found.stdout.strip() == "python -m pip install -e '.[dev]' && python -m pytest -n 2"


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((docs/[^)#]+)\)", README))))
def test_a_link_leads_somewhere(link: str) -> None:
    assert (REPOSITORY / link).is_file()


def test_every_command_stands_in_the_readme() -> None:
    from shapeguard.cli import commands
    from shapeguard.core.plugins import names

    assert [name for name in names(commands) if f"shapeguard {name.rstrip('_').replace('_', '-')}" not in README] == []


def test_the_hook_of_the_example_exists() -> None:
    (config,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    wanted = {hook["id"] for repo in yaml.safe_load(config)["repos"] for hook in repo["hooks"]}
    offered = {hook["id"] for hook in yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())}
    assert wanted <= offered


@pytest.mark.parametrize(
    "words",
    [
        ("lint", "--isolated", "--no-cache", "--exit-zero", "fixtures/scripts"),
        ("rule", "SG304"),
        ("config", "--isolated"),
        ("report", "fixtures/runs/ragged"),
        ("--help",),
        ("trace", "--help"),
    ],
)
def test_a_command_of_the_base_install_never_imports_torch(words: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("torch", "transformers", "accelerate"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "shapeguard", *words]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "was imported" not in done.stderr
