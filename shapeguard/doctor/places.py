"""Which stack keeps its compiled files where, and what decides that."""

from __future__ import annotations

import re
from pathlib import Path

from shapeguard.doctor.machine import Folder, Machine

NATIVE_DEFAULT, LOCKS_DEFAULT = "/tmp/neff_cache", "/tmp/local_cache"
XLA_DEFAULT = "/var/tmp/neuron-compile-cache"
_FLAG = re.compile(r"--cache_dir[= ](\S+)")


def folders(machine: Machine) -> list[Folder]:
    """Give the folders of the stacks that are installed; remote ones have no folder here."""
    found = []
    if "native" in machine.stacks and machine.value("TORCH_NEURONX_NEFF_DISABLE_CACHE") != "1":
        found.append(_named(machine, "TORCH_NEURONX_NEFF_CACHE_DIR", NATIVE_DEFAULT, "TorchNeuron"))
        found.append(_named(machine, "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR", LOCKS_DEFAULT, "TorchNeuron's locks"))
    if "xla" in machine.stacks:
        url, origin = xla_url(machine)
        if "://" not in url or url.startswith("file://"):
            path = Path(url.removeprefix("file://"))
            found.append(machine.folder(path, layer="torch_xla stack", origin=origin))
    return found


def xla_url(machine: Machine) -> tuple[str, str]:
    """Give where the torch_xla stack looks, and why: its flag wins over its variable."""
    flag = cache_flag(machine)
    if flag:
        return flag, "--cache_dir in NEURON_CC_FLAGS"
    variable = machine.value("NEURON_COMPILE_CACHE_URL")
    return (variable, "NEURON_COMPILE_CACHE_URL") if variable else (XLA_DEFAULT, "default")


def cache_flag(machine: Machine) -> str:
    """Give the folder that the compiler's flags name."""
    found = _FLAG.search(machine.value("NEURON_CC_FLAGS"))
    return found[1] if found else ""


def _named(machine: Machine, variable: str, default: str, layer: str) -> Folder:
    value = machine.value(variable)
    return machine.folder(Path(value or default), layer=layer, origin=variable if value else "default")
