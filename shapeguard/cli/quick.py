"""Answers the commonest question before click is there: is a rule's word in these files at all?

A hook asks it at every commit, and click with the reports is half of what a start costs. Whatever this cannot answer in
one line, an error too, is left to the command, which says the same of the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from shapeguard.config.nearest import Configs
from shapeguard.core.errors import ShapeguardError
from shapeguard.lint.clean import nothing_found, num_clean
from shapeguard.lint.scope import Scope

_FLAGS = frozenset({"-q", "--quiet", "-n", "--no-cache", "--isolated", "--force-exclude"})
_SUFFIXES = (".py", ".pyi")


def is_answered(arguments: Sequence[str]) -> bool:
    """Whether `lint` with these arguments could be answered, which then is done: exit code 0."""
    flags = {argument for argument in arguments if argument.startswith("-")}
    files = [argument for argument in arguments if not argument.startswith("-")]
    is_plain = flags <= _FLAGS and all(file.endswith(_SUFFIXES) for file in files)
    if not files or not is_plain or os.environ.get("SHAPEGUARD_OUTPUT_FORMAT"):
        return False
    try:
        scopes = _Scopes(flags)
        number = num_clean([Path(file) for file in files], scopes.at) if scopes.are_plain else None
        return (
            number is not None and scopes.are_plain and _say(number, is_quiet=not flags.isdisjoint(("-q", "--quiet")))
        )
    except (OSError, ShapeguardError):
        return False


class _Scopes:
    """The linter's settings by folder."""

    def __init__(self, flags: set[str]) -> None:
        self._forces = "--force-exclude" in flags
        self._configs = Configs(file=None, is_isolated="--isolated" in flags)
        self._known: dict[int, Scope] = {}
        self.are_plain = True
        """No setting asks for more than an answer."""
        self.at(Path())

    def at(self, folder: Path) -> Scope:
        """The scope of the files of a folder."""
        config = self._configs.at(folder)
        if id(config) not in self._known:
            lint = config.settings.lint
            self.are_plain &= not (lint.fix or lint.baseline or config.settings.output_format)
            if self._forces:
                lint = replace(lint, force_exclude=True)
            self._known[id(config)] = Scope(root=config.root, settings=lint)
        return self._known[id(config)]


def _say(number: int, *, is_quiet: bool) -> bool:
    if sys.stdout is not None and not is_quiet:
        sys.stdout.write(f"{nothing_found(number)}\n")
        sys.stdout.flush()
    return True
