"""What `shapeguard init` writes for the project it stands in; pure but for reading the folder.

Nothing is overwritten: a file that is there stays as it is, or gets lines at its end where that cannot change what it
says already.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from shapeguard.checks.start_texts import HOOK, WORKFLOW
from shapeguard.core.errors import UsageError

CONFIG, HOOKS, ATTRIBUTES = "shapeguard.toml", ".pre-commit-config.yaml", ".gitattributes"
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


def _line_end(file: Path) -> str:
    return "\r\n" if b"\r\n" in file.read_bytes() else "\n"


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
        text = text.replace("\n", _line_end(config))
        if _can_follow(_text(config), text):
            files.append(Planned(path=config.name, text=text, is_added=True))
        else:
            kept.append(f"{config.name}: it is yours; add to it:\n{text.strip()}")
    place = _place(root, config.name if config is not None else CONFIG)
    _hooks(place, files, kept)
    _workflow(place, package=package, python=python, files=files, kept=kept)
    _attributes(root, files, kept)
    return Plan(files=tuple(files), kept=tuple(kept), jobs=tuple(jobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a project stands in its repository: GitHub and pre-commit look at the top of it only."""

    root: Path
    inside: str = ""
    """The project's folder, from the top of the repository; empty at the top."""
    up: str = ""
    """The way from the project's folder to the top: `../../`."""
    config_option: str = ""
    """What a command that is run at the top needs to find the project."""


def _place(root: Path, config: str) -> _Place:
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    if top == root:
        return _Place(root=root)
    inside = root.relative_to(top).as_posix()
    option = f" --config {shlex.quote(f'{inside}/{config}')}"
    return _Place(root=root, inside=inside, up="../" * (inside.count("/") + 1), config_option=option)


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
        plain = unicodedata.normalize("NFKD", Path(script).stem).encode("ascii", "ignore").decode()
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-") or "job"
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
    words = {name: json.dumps(script, ensure_ascii=False) for name, script in jobs.items()}
    blocks = [
        f"[{prefix}.{name}]\ncommand = [{word}]\n\n[{prefix}.{name}.budget]\nafter-warmup = 0\n"
        for name, word in words.items()
    ]
    return "\n".join(blocks)


def _hooks(place: _Place, files: list[Planned], kept: list[str]) -> None:
    """Hooks stand where git's own folder does: in another one nobody looks for them."""
    hook = HOOK.format(config=place.config_option)
    names = (place.up + HOOKS, place.up + HOOKS.replace(".yaml", ".yml"))
    there = next((name for name in names if (place.root / name).exists()), None)
    if there is None:
        files.append(Planned(path=names[0], text=f"repos:\n{hook}"))
    elif "shapeguard" in _text(place.root / there) and place.config_option.strip() in _text(place.root / there):
        kept.append(f"{there}: it names shapeguard")
    else:
        kept.append(f"{there}: it is yours; add to its `repos`:\n{hook.rstrip()}")


def _attributes(root: Path, files: list[Planned], kept: list[str]) -> None:
    text = _text(root / ATTRIBUTES)
    if "merge=shapeguard" in text:
        kept.append(f"{ATTRIBUTES}: it names the merge driver")
        return
    lead = "\n" if text and not text.endswith("\n") else ""
    files.append(Planned(path=ATTRIBUTES, text=f"{lead}{_MERGE_LINE}\n", is_added=bool(text)))


def _workflow(place: _Place, *, package: str, python: str, files: list[Planned], kept: list[str]) -> None:
    name = "-".join(["shapeguard", *re.findall(r"[\w.]+", place.inside)])
    path = f"{place.up}.github/workflows/{name}.yml"
    if (place.root / path).exists():
        kept.append(f"{path}: it is there already")
        return
    option, inside = place.config_option, f"{place.inside}/" if place.inside else ""
    install = ['python -m pip install "$SHAPEGUARD_PACKAGE"', f"shapeguard lock --requirements{option} > locked.txt"]
    wanted = f"-r {shlex.quote(inside + 'requirements.txt')} " if (place.root / "requirements.txt").is_file() else ""
    if not wanted and "[build-system]" in _text(place.root / "pyproject.toml"):
        wanted = f"{shlex.quote('./' + place.inside)} " if inside else ". "
    install.append(f"python -m pip install {wanted}-r locked.txt")
    text = WORKFLOW.format(
        name=name,
        package=package,
        python=python,
        install="\n".join(f"          {line}" for line in install),
        folder=f" {shlex.quote(place.inside)}" if inside else "",
        config=option,
    )
    files.append(Planned(path=path, text=text))
