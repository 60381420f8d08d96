"""Compilers: the one that is installed, and those that filled the cache."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from shapeguard.core.neffs import is_compiler_folder, version_order
from shapeguard.doctor.check import Check, Notice
from shapeguard.doctor.machine import Machine
from shapeguard.doctor.places import folders


class Compilers(Check):
    """Folders of several versions of neuronx-cc, of which only one is used; no compiler at all."""

    name = "compilers"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Compare the installed compiler with the folders of the cache."""
        compiler = machine.package("neuronx-cc")
        if machine.stacks and compiler is None:
            yield Notice(
                subject="neuronx-cc",
                message="neuronx-cc is not installed: nothing that is not cached can be compiled",
                hint="install neuronx-cc from AWS's index",
            )
        for folder in folders(machine):
            versions = self._versions(folder.path)
            installed = compiler.version if compiler is not None else ""
            others = [each for each in versions if each != installed]
            if installed and others:
                yield Notice(
                    subject=str(folder.path),
                    message=f"{folder.path} holds graphs of {', '.join(versions)}; neuronx-cc {installed} uses "
                    + ("only its own" if installed in versions else "none of them"),
                    hint="shapeguard cache clean --old-versions --dry-run",
                )

    @staticmethod
    def _versions(path: Path) -> list[str]:
        try:
            names = [each.name for each in path.iterdir() if is_compiler_folder(each.name)]
        except OSError:
            return []
        return sorted((name.removeprefix("neuronxcc-") for name in names), key=version_order)
