"""NEFF folders as the Neuron stacks leave them."""

from __future__ import annotations

import os
import time
from pathlib import Path

NEFF = b"NEFF" + bytes(2000)


def old(path: Path, seconds: float = 3600) -> Path:
    """Make a file or folder look older."""
    when = time.time() - seconds
    os.utime(path, (when, when))
    return path


def torch_neuron(root: Path, key: str = "ab" * 16, data: bytes = NEFF) -> Path:
    """A NEFF of TorchNeuron's."""
    path = root / key[:2] / key[2:4] / f"{key}.neff"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def lock(root: Path, key: str = "ab" * 16) -> Path:
    """A lock of TorchNeuron's."""
    path = root / "locks" / f"{key}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return old(path)


def module(
    root: Path, name: str = "MODULE_123+e30acd3a", version: str = "2.20.9961.0+0acef03a", *, how: str = "done"
) -> Path:
    """A module's folder of torch-xla: done, failed, cut-off or locked."""
    path = root / f"neuronxcc-{version}" / name
    path.mkdir(parents=True)
    (path / "model.hlo_module.pb").write_bytes(b"hlo")
    (path / "compile_flags.json").write_text("[]")
    if how == "done":
        (path / "model.neff").write_bytes(NEFF)
        (path / "model.done").touch()
    if how == "failed":
        (path / "model.log").write_text("error")
        (path / "model.neff").write_bytes(b"none\n")
    if how == "locked":
        (path / "model.hlo_module.pb.lock").touch()
        old(path / "model.hlo_module.pb.lock")
    return old(path)
