"""What a user can set for a trace, and how the child process learns of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TARGETS = ("trn2", "trn3")
DEVICES = ("auto", "neuron", "sim", "cpu")
INNER = ("cpu", "meta")
FAIL_ON = ("new", "after-warmup", "any")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a trace."""

    device: str = "sim"
    inner: str = "cpu"
    """What the simulated device computes on."""
    target: str = "trn2"
    stub_weights: bool = False
    max_steps: int | None = None
    warmup_steps: int = 2
    num_devices: int = 1


def environment(settings: Settings, *, folder: Path, root: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Give the child's environment: the settings, and the simulated distribution before everything installed."""
    found = {
        name: value for name, value in base.items() if not name.startswith(("SHAPEGUARD_RUN_", "SHAPEGUARD_WORLD"))
    }
    found.update(
        SHAPEGUARD_RUN_DIR=str(folder),
        SHAPEGUARD_DEVICE=settings.device,
        SHAPEGUARD_INNER=settings.inner,
        SHAPEGUARD_TARGET=settings.target,
        SHAPEGUARD_STUB_WEIGHTS="1" if settings.stub_weights else "0",
        SHAPEGUARD_MAX_STEPS="" if settings.max_steps is None else str(settings.max_steps),
        SHAPEGUARD_WARMUP_STEPS=str(settings.warmup_steps),
        SHAPEGUARD_ROOT=str(root),
        SHAPEGUARD_DEVICES=str(settings.num_devices),
    )
    before, ours = base.get("PYTHONPATH"), site(settings.device)
    found["PYTHONPATH"] = f"{ours}{os.pathsep}{before}" if before else str(ours)
    if settings.device == "neuron":
        # Else the counters of TorchNeuron's cache, from which some outcomes are known, stand still.
        found.setdefault("TORCH_NEURONX_METRICS_ENABLED", "1")
    # `TORCH_DEVICE_BACKEND_AUTOLOAD=0` would hide the simulated device; a real torch_neuronx is hidden by its name.
    found["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    return found


def site(device: str = "sim") -> Path:
    """Give the folder that is put before everything installed; found by path, since importing it would claim a device.

    For the simulated device it is a torch_neuronx; for a real one, what follows the installed torch_neuronx.
    """
    part = "hardware" if device == "neuron" else "sim"
    return Path(__file__).resolve().parent.parent / "neuron" / part / "site"
