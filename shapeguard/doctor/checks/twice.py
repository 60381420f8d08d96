"""Packages that are installed twice, and what hides an installed one."""

from __future__ import annotations

import os
from collections.abc import Iterable

from shapeguard.doctor.check import Check, Notice
from shapeguard.doctor.machine import WATCHED, Machine


class Twice(Check):
    """One package in two folders: the first on the path is imported."""

    name = "twice"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Name each pair and which of the two wins."""
        for name in WATCHED:
            found = [each for each in machine.packages if each.name == name]
            for first, other in zip(found[:1] * len(found), found[1:], strict=False):
                if other.version != first.version:
                    yield Notice(
                        subject=name,
                        message=f"{name} is installed twice: {first.version} in {first.location} wins over "
                        f"{other.version} in {other.location}",
                        hint="uninstall one of them",
                    )
        for folder in machine.value("PYTHONPATH").split(os.pathsep):
            if folder.rstrip("/").endswith(("neuron/sim/site", "neuron/hardware/site")):
                yield Notice(
                    subject="PYTHONPATH",
                    message=f"PYTHONPATH holds {folder}: the simulated torch_neuronx hides an installed one outside of "
                    "`shapeguard trace` too",
                    hint="take it out of PYTHONPATH",
                )
