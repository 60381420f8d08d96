"""Settings that contradict each other, and which wins."""

from __future__ import annotations

from collections.abc import Iterable

from shapeguard.doctor.check import Check, Notice
from shapeguard.doctor.machine import Machine
from shapeguard.doctor.places import cache_flag

_LEVELS = ("O1", "O2", "O3")


class Conflicts(Check):
    """Two settings for one thing, values that are not taken, switches that undo others."""

    name = "conflicts"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Look at the pairs that are known."""
        flag, url = cache_flag(machine), machine.value("NEURON_COMPILE_CACHE_URL")
        if flag and url and flag != url and "xla" in machine.stacks:
            yield Notice(
                subject="NEURON_COMPILE_CACHE_URL",
                message=f"--cache_dir={flag} in NEURON_CC_FLAGS wins over NEURON_COMPILE_CACHE_URL={url}",
                hint="set one of them",
            )
        if flag and machine.stacks == {"native"}:
            yield Notice(
                subject="NEURON_CC_FLAGS",
                message=f"--cache_dir={flag} in NEURON_CC_FLAGS names no cache of TorchNeuron's, but is part of every "
                "key: another value compiles everything anew",
                hint="use TORCH_NEURONX_NEFF_CACHE_DIR and take it out of NEURON_CC_FLAGS",
            )
        if machine.value("TORCH_NEURONX_NEFF_DISABLE_CACHE") == "1" and machine.value("TORCH_NEURONX_NEFF_CACHE_DIR"):
            yield Notice(
                subject="TORCH_NEURONX_NEFF_CACHE_DIR",
                message="TORCH_NEURONX_NEFF_DISABLE_CACHE=1 wins over TORCH_NEURONX_NEFF_CACHE_DIR: nothing is kept",
                hint="unset TORCH_NEURONX_NEFF_DISABLE_CACHE",
            )
        is_sync = machine.value("NEURON_LAUNCH_BLOCKING") == "1"
        if machine.value("TORCH_NEURONX_DISABLE_NEFF_CACHE") == "1" and not is_sync:
            yield Notice(
                subject="TORCH_NEURONX_DISABLE_NEFF_CACHE",
                message="TORCH_NEURONX_DISABLE_NEFF_CACHE=1 acts in sync mode only (NEURON_LAUNCH_BLOCKING=1)",
                hint="TORCH_NEURONX_NEFF_DISABLE_CACHE turns the cache on disk off",
            )
        yield from self._levels(machine)

    def _levels(self, machine: Machine) -> Iterable[Notice]:
        level, flags = machine.value("NEURON_COMPILER_OPT_LEVEL").lstrip("-"), machine.value("NEURON_CC_FLAGS").split()
        in_flags = next((word.lstrip("-") for word in flags if word.lstrip("-") in _LEVELS), "")
        if level and level not in _LEVELS:
            yield Notice(
                subject="NEURON_COMPILER_OPT_LEVEL",
                message=f"NEURON_COMPILER_OPT_LEVEL={level} is none of {', '.join(_LEVELS)}",
                hint="use O1, O2 or O3",
            )
        elif level and in_flags and level != in_flags:
            yield Notice(
                subject="NEURON_COMPILER_OPT_LEVEL",
                message=f"NEURON_COMPILER_OPT_LEVEL={level} and -{in_flags} in NEURON_CC_FLAGS: both are handed to the "
                "compiler, which takes the last, and both are in every key",
                hint="set one of them",
            )
        cores = machine.value("NEURON_LOGICAL_NC_CONFIG")
        if cores and cores not in ("1", "2"):
            yield Notice(
                subject="NEURON_LOGICAL_NC_CONFIG",
                message=f"NEURON_LOGICAL_NC_CONFIG={cores}: trn2 takes 1 or 2",
                hint="use 2, the default, or 1",
            )
