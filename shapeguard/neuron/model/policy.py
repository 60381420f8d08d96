"""What differs between releases or is switched by environment variables (facts, sections 1.7, 1.8, 3.1).

The defaults follow torch-neuronx 2.14 as AWS documents it (October 2026); where that is silent, the public source of
April 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How this run counts."""

    target: str = "trn2"
    """Platform the graphs are compiled for."""
    logical_cores: str = "2"
    opt_level_eager: str = "O1"
    opt_level_compile: str = "O2"
    compiler_flags: str = ""
    """`NEURON_CC_FLAGS`, part of every key."""
    is_sync: bool = False
    """`NEURON_LAUNCH_BLOCKING=1`: no prologues, keys without the compiler suffix. Which one wheels ship is unknown."""
    folds_layouts: bool = True
    """Permutations and slices become part of the consumer (`TORCH_NEURONX_ENABLE_PROLOGUE`)."""
    checks_bounds: bool = True
    """Indexing runs bounds checks as operators (`TORCH_NEURONX_SKIP_OP_PRECONDITIONS=1` turns them off)."""
    recompiles_on_second_shape: bool = True
    """`dynamic=None`: 2.14 recompiles for each new shape; the source of April 2026 failed on the second one."""
    copies_cpu_inputs: bool = True
    """A compiled region moves inputs that are on the host (`TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY=1`: raises)."""

    @property
    def flags(self) -> list[str]:
        """What the compiler is told, an option with its value each."""
        return ["--model-type transformer", "--auto-cast=none", *filter(None, re.split(r"\s+(?=-)", self.compiler_flags.strip()))]

    def suffix(self, opt_level: str) -> str:
        """Give what the compiler adds to every key."""
        return f"{self.target}_{self.logical_cores}_{opt_level}_{' '.join(self.flags)}".replace(" ", "_").replace("=", "-")


def from_environment(environ: Mapping[str, str], *, target: str = "trn2") -> Policy:
    """Read the variables that TorchNeuron reads; unset ones keep the defaults."""

    def is_on(name: str, default: str = "0") -> bool:
        return environ.get(name, default) == "1"

    level = environ.get("NEURON_COMPILER_OPT_LEVEL", "").lstrip("-")
    is_sync = is_on("NEURON_LAUNCH_BLOCKING")
    return Policy(
        target=target,
        logical_cores=environ.get("NEURON_LOGICAL_NC_CONFIG", "2"),
        opt_level_eager=level or "O1",
        opt_level_compile=level or "O2",
        compiler_flags=environ.get("NEURON_CC_FLAGS", ""),
        is_sync=is_sync,
        folds_layouts=not is_sync
        and is_on("TORCH_NEURONX_ENABLE_PROLOGUE", "1")
        and is_on("TORCH_NEURONX_ENABLE_STABLEHLO", "1"),
        checks_bounds=not is_on("TORCH_NEURONX_SKIP_OP_PRECONDITIONS"),
        recompiles_on_second_shape=environ.get("SHAPEGUARD_SIM_SECOND_SHAPE", "recompile") != "fail",
        copies_cpu_inputs=not is_on("TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY"),
    )
