"""The sample project in a folder of its own, changed as a pull request would change it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY

SAMPLE = REPOSITORY / "fixtures" / "sample_project"
_OUT = ("CI", "GITHUB_STEP_SUMMARY", "SHAPEGUARD_LOCKED", "SHAPEGUARD_FROZEN", "SHAPEGUARD_OUTPUT_FORMAT")


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder, as a shell would."""
    env = {name: value for name, value in os.environ.items() if name not in _OUT}
    env |= {"OMP_NUM_THREADS": "1", "SHAPEGUARD_NO_CACHE": "1", **environment}
    command = [sys.executable, "-m", "shapeguard", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def copied(target: Path) -> Path:
    """Give the sample project in a new folder."""
    return Path(shutil.copytree(SAMPLE, target, ignore=shutil.ignore_patterns(".shapeguard*", "__pycache__", "*.lock")))


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a pull request changes: text in a file, or the name of a file."""

    what: str
    job: str = "train"
    edits: tuple[tuple[str, str, str], ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    line: str = ""
    """Beginning of the line that the finding must stand at."""
    cause: str = ""
    """What its message must say."""

    def apply(self, folder: Path) -> None:
        for name, old, new in self.edits:
            text = (folder / name).read_text()
            assert text.count(old) >= 1, (name, old)
            (folder / name).write_text(text.replace(old, new))
        for old, new in self.renames:
            (folder / old).rename(folder / new)


def checked(base: Path, change: Change, target: Path) -> tuple[int, Mapping[str, Any]]:
    """Copy a locked project, change it, check the job."""
    folder = Path(shutil.copytree(base, target, ignore=shutil.ignore_patterns(".shapeguard", "__pycache__")))
    change.apply(folder)
    ran = run(folder, "check", change.job, "--json")
    assert ran.returncode in (0, 1), ran.stderr
    return ran.returncode, json.loads(ran.stdout)
