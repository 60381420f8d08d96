"""What the linter can be told, in `[tool.shapeguard.lint]`; the names of the keys have dashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pants.d",
    ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".shapeguard", ".shapeguard_cache", ".svn", ".tox", ".venv",
    ".vscode", "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist", "node_modules", "site-packages",
    "venv",
)  # fmt: skip

_AT_LEAST_1 = {"min": 1}
_NEURON = {"words": ("all", "auto"), "hint": "write patterns of paths as a list"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthEntry:
    """Lengths that a fix may write into the files of `paths`."""

    paths: tuple[str, ...] = ("**",)
    """Patterns with git's meaning, from the folder of the configuration."""
    train: int | None = field(default=None, metadata=_AT_LEAST_1)
    """Tokens a training row is padded to."""
    prompt: int | None = field(default=None, metadata=_AT_LEAST_1)
    """Tokens a prompt is padded to."""
    cache: int | None = field(default=None, metadata=_AT_LEAST_1)
    """Tokens the static cache holds: prompt and answer."""
    new_tokens: int | None = field(default=None, metadata=_AT_LEAST_1)
    """Tokens that `generate()` may add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintSettings:
    """How `shapeguard lint` judges files; an option of the command line wins over a key."""

    select: tuple[str, ...] = ()
    """Codes or their beginnings that are checked; empty: the rules that are on by default. "ALL" is every rule."""
    extend_select: tuple[str, ...] = ()
    """Codes that are checked as well."""
    ignore: tuple[str, ...] = ()
    """Codes that are not checked; the more exact of `select` and `ignore` wins."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of paths, and the codes that are not reported there."""
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    """Patterns of paths that a walk leaves out."""
    extend_exclude: tuple[str, ...] = ()
    """More such patterns, beside the default ones."""
    force_exclude: bool = False
    """Leave excluded files out even when they are named on the command line, as pre-commit does."""
    respect_gitignore: bool = True
    """Leave out what git ignores."""
    neuron: str | tuple[str, ...] = field(default="all", metadata=_NEURON)
    """Which code is for Neuron: "all", "auto" (files and projects that show it), or patterns of paths."""
    lengths: tuple[LengthEntry, ...] = ()
    """Lengths that fixes may write, by path; of several entries that match, the later one wins."""
    transformers: str = ""
    """Version of transformers the code runs with, "5.24"; empty: the installed one."""
    fix: bool = False
    """Apply the safe fixes."""
    unsafe_fixes: bool = False
    """With `fix`, apply the unsafe ones too."""
    baseline: str = ""
    """File of known findings that are not reported, relative to the configuration."""
    cache_dir: str = ""
    """Folder of the result cache; empty: `.shapeguard_cache` beside the configuration."""
    jobs: int = field(default=0, metadata={"min": 0})
    """Processes over files; 0: one for each processor."""
