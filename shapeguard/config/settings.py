"""All that a configuration file can say: the options of the parts, assembled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shapeguard.checks.settings import JobSettings
from shapeguard.lint.settings import LintSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`[tool.shapeguard]` in `pyproject.toml`, or the whole of `shapeguard.toml`."""

    output_format: str = ""
    """Format of what is printed, where neither an option nor SHAPEGUARD_OUTPUT_FORMAT says; empty: full."""
    cache_dir: str = field(default="", metadata={"env": "SHAPEGUARD_CACHE_DIR"})
    """Folder of the graph cache; empty: `$XDG_CACHE_HOME/shapeguard`."""
    no_cache: bool = field(default=False, metadata={"env": "SHAPEGUARD_NO_CACHE"})
    """Use no cache: neither the graph cache nor the linter's result cache."""
    locked: bool = field(default=False, metadata={"env": "SHAPEGUARD_LOCKED"})
    """Fail where the lock would change, as `--locked` does."""
    frozen: bool = field(default=False, metadata={"env": "SHAPEGUARD_FROZEN"})
    """Trust the lock as it is, as `--frozen` does."""
    lint: LintSettings = field(default_factory=LintSettings)
    """The linter."""
    jobs: Mapping[str, JobSettings] = field(default_factory=dict)
    """Commands that are traced for the lock, by the names you give them."""
