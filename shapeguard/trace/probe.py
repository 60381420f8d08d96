"""Ask an interpreter what it has, without importing any of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from shapeguard.trace.settings import site

_QUESTION = """
import importlib.metadata, importlib.util, json, pathlib, sys
found = [d.version for d in importlib.metadata.distributions(name="torch-neuronx")
         if pathlib.Path(d.locate_file("")).resolve() != pathlib.Path(sys.argv[1])]
json.dump({"torch": importlib.util.find_spec("torch") is not None, "neuron": (found or [""])[0]}, sys.stdout)
"""
PATIENCE_S = 60
SYSTEM_ROOT = "SHAPEGUARD_SYSTEM_ROOT"
"""Where `/dev`, `/proc` and `/opt` are looked for: a container may see those of its host elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an interpreter has."""

    torch: bool
    neuron: str
    """Version of a real torch_neuronx, empty where there is none."""


def installed(interpreter: str) -> Installed | None:
    """Ask an interpreter; None where it cannot be asked, and then the program itself will tell."""
    if not interpreter:
        return None
    if _is_this(interpreter):
        return Installed(torch=find_spec("torch") is not None, neuron=_neuron())
    try:
        # Not `-I`: what counts is what the program will find, PYTHONPATH included.
        answer = subprocess.run(
            [interpreter, "-c", _QUESTION],
            capture_output=True,
            timeout=PATIENCE_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        found = json.loads(answer.stdout)
        return Installed(torch=bool(found["torch"]), neuron=str(found["neuron"]))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return None


def _is_this(interpreter: str) -> bool:
    # Not the resolved path: in a virtual environment `python` is a link to the system's own.
    return Path(interpreter).absolute() == Path(sys.executable).absolute()


def _neuron() -> str:
    from importlib.metadata import distributions

    for found in distributions(name="torch-neuronx"):
        if Path(str(found.locate_file(""))).resolve() != site():
            return found.version
    return ""


def device_nodes(names: Iterable[str] | None = None) -> bool:
    """Whether the driver shows a Neuron device."""
    devices = Path(os.environ.get(SYSTEM_ROOT) or "/") / "dev"
    entries = (path.name for path in devices.glob("neuron*")) if names is None else names
    return any(name.startswith("neuron") and name[6:].isdigit() for name in entries)
