"""The settings of one configuration, made ready for asking about files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from shapeguard.core.errors import ConfigError
from shapeguard.lint.globs import Patterns
from shapeguard.lint.notices import UNREADABLE, catalogue
from shapeguard.lint.selection import matching, select
from shapeguard.lint.settings import LengthEntry, LintSettings
from shapeguard.lint.task import FixMode, Task
from shapeguard.lint.visit import Lengths

ScopeFor = Callable[[Path], "Scope"]
"""Gives the scope of the files that stand in a folder."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What one configuration says about the files below its folder."""

    root: Path
    """Folder of the configuration; patterns count from there."""
    settings: LintSettings = field(default_factory=LintSettings)
    installed_transformers: tuple[int, int] | None = None

    @cached_property
    def excluded(self) -> Patterns:
        """What a walk leaves out."""
        return Patterns([*self.settings.exclude, *self.settings.extend_exclude])

    @cached_property
    def codes(self) -> frozenset[str]:
        """The codes that are checked."""
        settings = self.settings
        return select(
            catalogue().values(), select=settings.select, extend=settings.extend_select, ignore=settings.ignore
        )

    @cached_property
    def reports_unreadable(self) -> bool:
        """Whether files that cannot be read or parsed are reported."""
        return UNREADABLE in self.codes

    @cached_property
    def _ignores(self) -> list[tuple[Patterns, bool, frozenset[str]]]:
        entries = catalogue().values()
        rows: Mapping[str, tuple[str, ...]] = self.settings.per_file_ignores
        return [
            (Patterns([pattern.removeprefix("!")]), pattern.startswith("!"), matching(codes, entries))
            for pattern, codes in rows.items()
        ]

    @cached_property
    def _lengths(self) -> list[tuple[Patterns, LengthEntry]]:
        return [(Patterns(entry.paths), entry) for entry in self.settings.lengths]

    @cached_property
    def _neuron_paths(self) -> Patterns:
        neuron = self.settings.neuron
        return Patterns([neuron] if isinstance(neuron, str) else neuron)

    @cached_property
    def _transformers(self) -> tuple[int, int] | None:
        return version(self.settings.transformers) if self.settings.transformers else self.installed_transformers

    @cached_property
    def _is_neuron_project(self) -> bool:
        from shapeguard.lint.evidence import project_shows_neuron

        return project_shows_neuron(self.root)

    @cached_property
    def _base(self) -> str:
        return whole_path(self.root).rstrip("/") + "/"

    def relative(self, whole: str) -> str:
        """An absolute path as patterns see it: from the folder; outside of it, the whole path without its first `/`."""
        return whole.removeprefix(self._base).lstrip("/")

    def is_excluded(self, whole: str) -> bool:
        """Whether a walk would not have come to the file."""
        return self.excluded.match(self.relative(whole))

    def task(self, file: Path, *, path: str, is_notebook: bool, fix: FixMode) -> Task:
        """Say how the file is to be judged."""
        name = self.relative(whole_path(file))
        return Task(
            path=path,
            is_notebook=is_notebook,
            codes=self._codes_for(name),
            neuron=self._is_neuron(name),
            lengths=self._lengths_for(name),
            transformers=self._transformers,
            fix=fix,
        )

    def _codes_for(self, name: str) -> frozenset[str]:
        left_out: set[str] = set()
        for patterns, negated, codes in self._ignores:
            if patterns.match(name) is not negated:
                left_out |= codes
        return self.codes - left_out if left_out else self.codes

    def _is_neuron(self, name: str) -> bool | None:
        if self.settings.neuron == "all":
            return True
        if self.settings.neuron == "auto":
            return True if self._is_neuron_project else None
        return self._neuron_paths.match(name)

    def _lengths_for(self, name: str) -> Lengths | None:
        found: dict[str, int] = {}
        for patterns, entry in self._lengths:
            if patterns.match(name):
                pairs = {key: getattr(entry, key) for key in ("train", "prompt", "cache", "new_tokens")}
                found |= {key: value for key, value in pairs.items() if value is not None}
        return Lengths(**found) if found else None


def version(text: str) -> tuple[int, int]:
    """Read "5.24" or "5.24.1"."""
    parts = text.split(".")
    try:
        return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    except ValueError:
        raise ConfigError(f"transformers = {text!r} is no version", hint='write it as transformers = "5.24"') from None


def whole_path(path: str | os.PathLike[str]) -> str:
    """The absolute path with forward slashes; links are not followed."""
    return os.path.abspath(path).replace(os.sep, "/")  # noqa: PTH100
