"""Which Neuron stack is installed, and whether its parts fit together."""

from __future__ import annotations

from collections.abc import Iterable

from shapeguard.doctor.check import Check, Level, Notice
from shapeguard.doctor.machine import Machine, Package

_TORCH = ((2, 13), (2, 14))
_TRANSFORMERS = (5, 20)


class Stacks(Check):
    """Two stacks beside each other, releases that are built for another torch."""

    name = "stacks"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Compare the packages with each other."""
        neuron, torch, xla = (machine.package(name) for name in ("torch-neuronx", "torch", "torch-xla"))
        if neuron is not None and neuron.release >= (2, 10) and xla is not None:
            yield Notice(
                subject="torch-xla",
                message=f"torch-xla {xla.version} lies beside torch-neuronx {neuron.version}, which is native and does "
                "not use it; scripts that import torch_xla run on another stack with another cache",
                hint="uninstall torch-xla and libneuronxla, or keep the two stacks in separate environments",
            )
        if neuron is not None and torch is None:
            yield Notice(
                subject="torch",
                message="torch-neuronx is installed, torch is not",
                hint="install the torch of its release",
            )
        if neuron is not None and torch is not None and neuron.release != torch.release:
            yield Notice(
                subject="torch-neuronx",
                message=f"torch-neuronx {neuron.version} is built for torch {_two(neuron)}, here is {torch.version}",
                hint=f"install torch {_two(neuron)}.*",
            )
        yield from self._simulation(machine, torch)

    def _simulation(self, machine: Machine, torch: Package | None) -> Iterable[Notice]:
        if "xla" in machine.stacks:
            return  # its torch is older, and nothing is simulated there
        if torch is not None and torch.release not in _TORCH:
            yield Notice(
                subject="torch",
                message=f"torch {torch.version}: the simulated device is built for 2.13 and 2.14",
                hint="python -m pip install 'torch>=2.13,<2.15'",
            )
        transformers = machine.package("transformers")
        if transformers is not None and transformers.release < _TRANSFORMERS:
            yield Notice(
                subject="transformers",
                message=f"transformers {transformers.version}: generate() does not move its inputs before 5.20",
                hint="python -m pip install 'transformers>=5.20'",
            )
        if torch is None and not machine.stacks:
            yield Notice(
                subject="torch",
                message="torch is not installed: lint, report, plan and cache work, trace does not",
                hint="python -m pip install 'shapeguard[trace]'",
                level=Level.NOTE,
            )


def _two(package: Package) -> str:
    return ".".join(map(str, package.release))
