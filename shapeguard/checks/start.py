"""What `shapeguard init` writes for the project it stands in; pure but for reading the folder.

Nothing is overwritten: a file that is there stays as it is, or gets lines at its end where that cannot change what it
says already.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapeguard.core.errors import UsageError

CONFIG, HOOKS, ATTRIBUTES = "shapeguard.toml", ".pre-commit-config.yaml", ".gitattributes"
WORKFLOW = ".github/workflows/shapeguard.yml"
PACKAGE = "shapeguard"
_FOLDERS = ("", "scripts", "examples", "src")
_MOST_JOBS = 8
_USES_TORCH = re.compile(r"^\s*(?:import|from)\s+(?:torch|transformers|accelerate|trl|peft)\b", re.MULTILINE)
_IS_PROGRAM = re.compile(r"^if\s+__name__\s*==\s*['\"]__main__['\"]", re.MULTILINE)
_MERGE_LINE = "shapeguard.lock merge=shapeguard"
MERGE_DRIVER = "git config merge.shapeguard.driver 'shapeguard lock merge %O %A %B %P'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One file to write: anew, or lines at the end of one that is there."""

    path: str
    text: str
    is_added: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be written, and what is left to the user."""

    files: tuple[Planned, ...]
    kept: tuple[str, ...] = ()
    """Files that are there and stay as they are, each with what to add by hand, if anything."""
    jobs: tuple[str, ...] = ()


def programs(root: Path) -> list[str]:
    """Give the scripts that look like programs for torch, those at the top first."""
    found = []
    for folder in _FOLDERS:
        for file in sorted((root / folder).glob("*.py")):
            text = _text(file)
            name = file.name
            if name.startswith(("test_", "conftest", "setup")) or not _IS_PROGRAM.search(text):
                continue
            if _USES_TORCH.search(text):
                found.append(file.relative_to(root).as_posix())
    return found[:_MOST_JOBS]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def plan(root: Path, *, config: Path | None, has_jobs: bool, scripts: Sequence[str], package: str, python: str) -> Plan:
    """Say what to write; `config` is the configuration that stands in the folder itself, if one does."""
    if not re.fullmatch(r"[^\s\"'`$\\][^\"'`$\\\n]*", package):
        raise UsageError(f"--package {package!r} cannot stand in a workflow", hint="give a name, a path or an address")
    jobs = _names(scripts)
    files: list[Planned] = []
    kept: list[str] = []
    if has_jobs:
        kept.append(f"{config.name if config else CONFIG}: it has jobs")
    elif config is None:
        files.append(Planned(path=CONFIG, text=_HEAD + _jobs(jobs, "jobs")))
    else:
        prefix = "jobs" if config.name == CONFIG else "tool.shapeguard.jobs"
        text = ("" if _text(config).endswith("\n") else "\n") + "\n" + _jobs(jobs, prefix)
        if _can_follow(_text(config), text):
            files.append(Planned(path=config.name, text=text, is_added=True))
        else:
            kept.append(f"{config.name}: it is yours; add to it:\n{text.strip()}")
    _hooks(root, files, kept)
    workflow = _workflow(root, package=package, python=python)
    if (root / WORKFLOW).exists():
        kept.append(f"{WORKFLOW}: it is there already")
    else:
        files.append(Planned(path=WORKFLOW, text=workflow))
    _attributes(root, files, kept)
    return Plan(files=tuple(files), kept=tuple(kept), jobs=tuple(jobs))


def _can_follow(there: str, text: str) -> bool:
    """Whether tables can be added at a file's end: not where the table above them is closed, `shapeguard = {…}`."""
    try:
        tomllib.loads(there + text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _names(scripts: Iterable[str]) -> dict[str, str]:
    """Name each job after its script; two of one name after their folders as well."""
    found: dict[str, str] = {}
    for script in scripts:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(script).stem).strip("-") or "job"
        name = stem if stem not in found and stem != "merge" else f"{Path(script).parent.name or 'run'}-{stem}"
        found[name] = script
    return found


_HEAD = "# What shapeguard traces, and how much it may compile: docs/check.md tells of every key.\n\n"
_EXAMPLE = """# [{prefix}.train]
# command = ["train.py", "--max-steps", "8"]
# inner = "meta"          # computes nothing: fast, and a model of any size
# budget = {{ after-warmup = 0 }}
"""


def _jobs(jobs: dict[str, str], prefix: str) -> str:
    if not jobs:
        return _EXAMPLE.format(prefix=prefix)
    blocks = [
        f"[{prefix}.{name}]\ncommand = [{json.dumps(script)}]\n\n[{prefix}.{name}.budget]\nafter-warmup = 0\n"
        for name, script in jobs.items()
    ]
    return "\n".join(blocks)


_HOOK = """  - repo: local
    hooks:
      - id: shapeguard
        name: shapeguard lint
        entry: shapeguard lint --force-exclude
        language: system
        types_or: [python, pyi, jupyter]
        require_serial: true
      - id: shapeguard-lock
        name: shapeguard check --static
        entry: shapeguard check --static
        language: system
        pass_filenames: false
"""


def _hooks(root: Path, files: list[Planned], kept: list[str]) -> None:
    there = next((name for name in (HOOKS, HOOKS.replace(".yaml", ".yml")) if (root / name).exists()), None)
    if there is None:
        files.append(Planned(path=HOOKS, text=f"repos:\n{_HOOK}"))
    elif "shapeguard" in _text(root / there):
        kept.append(f"{there}: it names shapeguard")
    else:
        kept.append(f"{there}: it is yours; add to its `repos`:\n{_HOOK.rstrip()}")


def _attributes(root: Path, files: list[Planned], kept: list[str]) -> None:
    text = _text(root / ATTRIBUTES)
    if "merge=shapeguard" in text:
        kept.append(f"{ATTRIBUTES}: it names the merge driver")
        return
    lead = "\n" if text and not text.endswith("\n") else ""
    files.append(Planned(path=ATTRIBUTES, text=f"{lead}{_MERGE_LINE}\n", is_added=bool(text)))


def _workflow(root: Path, *, package: str, python: str) -> str:
    install = ['python -m pip install "$SHAPEGUARD_PACKAGE"', "shapeguard lock --requirements > locked.txt"]
    wanted = "-r requirements.txt " if (root / "requirements.txt").is_file() else ""
    if not wanted and "[build-system]" in _text(root / "pyproject.toml"):
        wanted = ". "
    install.append(f"python -m pip install {wanted}-r locked.txt")
    steps = "\n".join(f"          {line}" for line in install)
    return _WORKFLOW.format(package=package, python=python, install=steps)


_WORKFLOW = """name: shapeguard

on: [push, pull_request]

permissions:
  contents: read
  security-events: write

jobs:
  shapeguard:
    runs-on: ubuntu-latest
    env:
      # Where shapeguard is installed from: a name on your index, a wheel, or an address that pip knows.
      SHAPEGUARD_PACKAGE: "{package}"
      OMP_NUM_THREADS: "1"
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "{python}"
      - name: Install what the lock was made with
        run: |
{install}
      - name: Find dynamic shapes in the code
        run: shapeguard lint --output-format github --output sarif=shapeguard-lint.sarif
      - name: Compare what compiles with the lock and the budgets
        if: success() || failure()
        run: shapeguard check --output-format github --output sarif=shapeguard-check.sarif
      - name: Show the findings of the code
        if: success() || failure()
        # Needs code scanning, which not every repository has.
        continue-on-error: true
        uses: github/codeql-action/upload-sarif@v3
        with:
          sarif_file: shapeguard-lint.sarif
          category: shapeguard-lint
      - name: Show the findings of the check
        if: success() || failure()
        continue-on-error: true
        uses: github/codeql-action/upload-sarif@v3
        with:
          sarif_file: shapeguard-check.sarif
          category: shapeguard-check
"""
