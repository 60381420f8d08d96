"""What differs between releases or is switched by environment variables (facts, sections 1.7, 1.8, 3.1).

The defaults follow torch-neuronx 2.14 as AWS documents it (October 2026); where that is silent, the public source of
April 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

KEYED = ("NEURON_CC_FLAGS", "NEURON_COMPILER_OPT_LEVEL", "NEURON_LOGICAL_NC_CONFIG")
"""Variables that are read again for every kernel: a change in the middle of a program gives every key anew."""


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
    returns_to_host: bool = False
    """`TORCH_NEURONX_RETAIN_DEVICE_MODE=1`: a region whose inputs are all on the host gives its results there."""
    falls_back_on_failure: bool = False
    """`TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION=0`: a region that cannot be compiled runs operator by operator."""
    concatenates: bool = False
    """`TORCH_NEURONX_ENABLE_CONCATENATION=1`: fused graphs are compiled as well, which depends on timing."""
    cache_dir: str = ""
    """`TORCH_NEURONX_NEFF_CACHE_DIR`; empty: a cache of this process alone, so that no count depends on a folder."""
    lock_dir: str = ""
    """`TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR`."""
    lock_timeout_s: float = 1200.0
    """`TORCH_NEURONX_NEFF_CACHE_LOCK_TIMEOUT`: after it a lock counts as stale."""
    has_disk: bool = True
    """`TORCH_NEURONX_NEFF_DISABLE_CACHE=1`: there is no persistent cache."""
    has_sync_memory: bool = True
    """`TORCH_NEURONX_DISABLE_NEFF_CACHE=1`: in sync mode every call of an eager operator asks the disk."""
    max_entries: int = 0
    """`NEURON_COMPILATION_CACHE_MAX_ENTRIES`: the least recently used entry makes room; 0: unbounded."""
    has_metrics: bool = False
    """`TORCH_NEURONX_METRICS_ENABLED=1`: the counters of the cache move."""
    compiler: str = ""
    """`SHAPEGUARD_SIM_COMPILER`: a version of neuronx-cc that the simulation is to have, part of the keys on disk."""
    speed: float = 0.0
    """`SHAPEGUARD_SIM_SPEED`: so many times faster than guessed a simulated compile takes; 0: it takes no time."""

    @property
    def flags(self) -> list[str]:
        """What the compiler is told, an option with its value each."""
        return [
            "--model-type transformer",
            "--auto-cast=none",
            *filter(None, re.split(r"\s+(?=-)", self.compiler_flags.strip())),
        ]

    def suffix(self, opt_level: str) -> str:
        """Give what the compiler adds to every key."""
        return f"{self.target}_{self.logical_cores}_{opt_level}_{' '.join(self.flags)}".replace(" ", "_").replace(
            "=", "-"
        )


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
        returns_to_host=is_on("TORCH_NEURONX_RETAIN_DEVICE_MODE"),
        falls_back_on_failure=environ.get("TORCH_NEURONX_DISABLE_FALLBACK_EXECUTION") == "0",
        concatenates=is_on("TORCH_NEURONX_ENABLE_CONCATENATION"),
        cache_dir=environ.get("TORCH_NEURONX_NEFF_CACHE_DIR", ""),
        lock_dir=environ.get("TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR", ""),
        lock_timeout_s=_number(environ, "TORCH_NEURONX_NEFF_CACHE_LOCK_TIMEOUT", 1200.0),
        has_disk=not is_on("TORCH_NEURONX_NEFF_DISABLE_CACHE"),
        has_sync_memory=not is_on("TORCH_NEURONX_DISABLE_NEFF_CACHE"),
        max_entries=int(_number(environ, "NEURON_COMPILATION_CACHE_MAX_ENTRIES", 0)),
        has_metrics=is_on("TORCH_NEURONX_METRICS_ENABLED"),
        compiler=environ.get("SHAPEGUARD_SIM_COMPILER", ""),
        speed=_number(environ, "SHAPEGUARD_SIM_SPEED", 0.0),
    )


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    """Read a number; what isn't one counts as unset, as for a program that must not fail by it."""
    try:
        return max(0.0, float(environ.get(name) or default))
    except ValueError:
        return default
