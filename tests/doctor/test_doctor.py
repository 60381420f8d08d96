"""`shapeguard doctor` on made-up machines: fake packages, devices and folders, and what it must say of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shapeguard.core.plugins import load
from shapeguard.doctor import checks
from shapeguard.doctor.check import Check
from shapeguard.doctor.variables import INSTEAD, PREFIXES, READERS
from tests.conftest import Shapeguard

NATIVE = {"torch": "2.14.0", "torch-neuronx": "2.14.3.0", "neuronx-cc": "2.33.1", "transformers": "5.24.0"}
XLA = {
    "torch": "2.8.0",
    "torch-neuronx": "2.8.0.2",
    "torch-xla": "2.8.0",
    "libneuronxla": "2.2.1",
    "neuronx-cc": "2.21.1",
}


@dataclass(frozen=True, kw_only=True)
class Box:
    """A machine."""

    packages: Mapping[str, str] = field(default_factory=lambda: NATIVE)
    devices: int = 1
    environ: Mapping[str, str] = field(default_factory=dict)
    """`{tmp}` stands for a folder of the machine."""
    options: tuple[str, ...] = ()
    folders: Mapping[str, int] = field(default_factory=dict)
    """Folders to make, with their modes."""
    mounts: str = ""
    says: tuple[str, ...] = ()
    """What must stand in the report; nothing: the set-up is clean."""


def own(**more: str) -> dict[str, str]:
    """Give folders of one's own for the native stack, and more variables."""
    folders = {"TORCH_NEURONX_NEFF_CACHE_DIR": "{tmp}/neffs", "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR": "{tmp}/locks"}
    return {**folders, **more}


def xla(**more: str) -> dict[str, str]:
    """Give a folder of one's own for the torch_xla stack, and more variables."""
    return {"NEURON_COMPILE_CACHE_URL": "{tmp}/neffs", **more}


PRIVATE = {"neffs": 0o700, "locks": 0o700}
BOXES = {
    "clean_native": Box(environ=own(), folders=PRIVATE),
    "clean_xla": Box(packages=XLA, environ=xla(), folders=PRIVATE),
    "laptop": Box(packages={"torch": "2.13.0+cpu", "transformers": "5.24.0"}, devices=0),
    "no_torch": Box(packages={}, devices=0),
    "runtime_variables": Box(environ=own(NEURON_RT_VISIBLE_CORES="0-3", NEURON_CC_FLAGS="-O2"), folders=PRIVATE),
    "cache_url_of_the_other_stack": Box(
        environ=own(NEURON_COMPILE_CACHE_URL="/data/cache"),
        folders=PRIVATE,
        says=(
            "NEURON_COMPILE_CACHE_URL is set, but read by the torch_xla stack only; installed is TorchNeuron (native)",
            "TorchNeuron (native) has TORCH_NEURONX_NEFF_CACHE_DIR",
        ),
    ),
    "native_variable_on_xla": Box(
        packages=XLA,
        environ=xla(TORCH_NEURONX_NEFF_CACHE_DIR="/data"),
        folders=PRIVATE,
        says=("read by TorchNeuron (native) only", "has NEURON_COMPILE_CACHE_URL"),
    ),
    "misspelt": Box(
        environ=own(TORCH_NEURONX_NEF_CACHE_DIR="/data"),
        folders=PRIVATE,
        says=(
            "TORCH_NEURONX_NEF_CACHE_DIR is set, but no Neuron stack",
            "did you mean TORCH_NEURONX_NEFF_CACHE_DIR?",
        ),
    ),
    "flag_and_variable": Box(
        packages=XLA,
        environ=xla(NEURON_CC_FLAGS="--cache_dir={tmp}/locks"),
        folders=PRIVATE,
        says=("wins over NEURON_COMPILE_CACHE_URL=", "--cache_dir in NEURON_CC_FLAGS"),
    ),
    "flag_of_the_other_stack": Box(
        environ=own(NEURON_CC_FLAGS="--cache_dir=/data -O1"),
        folders=PRIVATE,
        says=("names no cache of TorchNeuron's, but is part of every key",),
    ),
    "cache_off": Box(
        environ=own(TORCH_NEURONX_NEFF_DISABLE_CACHE="1"),
        folders=PRIVATE,
        says=("TORCH_NEURONX_NEFF_DISABLE_CACHE=1 wins over TORCH_NEURONX_NEFF_CACHE_DIR",),
    ),
    "wrong_switch": Box(
        environ=own(TORCH_NEURONX_DISABLE_NEFF_CACHE="1"),
        folders=PRIVATE,
        says=("acts in sync mode only", "TORCH_NEURONX_NEFF_DISABLE_CACHE turns the cache on disk off"),
    ),
    "two_levels": Box(
        environ=own(NEURON_COMPILER_OPT_LEVEL="O3", NEURON_CC_FLAGS="-O1"),
        folders=PRIVATE,
        says=("NEURON_COMPILER_OPT_LEVEL=O3 and -O1 in NEURON_CC_FLAGS",),
    ),
    "world_writable": Box(
        environ=own(), folders={**PRIVATE, "neffs": 0o777}, says=("anybody may write to", "chmod o-w")
    ),
    "network_folder": Box(
        environ=own(),
        folders=PRIVATE,
        mounts="server:/x {tmp}/neffs nfs4 rw 0 0\n",
        says=("lies on the network (nfs4)", "shapeguard cache push"),
    ),
    "relative_folder": Box(
        environ=own(TORCH_NEURONX_NEFF_CACHE_DIR="neffs"), folders=PRIVATE, says=("is a relative path",)
    ),
    "full_disk": Box(
        environ=own(),
        folders=PRIVATE,
        options=("--min-free", "100000000"),
        says=("GiB are free for", "wanted are 1e+08"),
    ),
    "mixed_compilers": Box(
        packages=XLA,
        environ=xla(),
        folders={**PRIVATE, "neffs/neuronxcc-2.20.9+aa": 0o700, "neffs/neuronxcc-2.19.1+bb": 0o700},
        says=("holds graphs of 2.19.1+bb, 2.20.9+aa; neuronx-cc 2.21.1 uses none of them", "--old-versions"),
    ),
    "no_compiler": Box(
        packages={k: v for k, v in NATIVE.items() if k != "neuronx-cc"},
        environ=own(),
        folders=PRIVATE,
        says=("neuronx-cc is not installed",),
    ),
    "no_driver": Box(devices=0, environ=own(), folders=PRIVATE, says=("the driver is not loaded", "aws-neuronx-dkms")),
    "cpu_torch_on_trainium": Box(
        packages={"torch": "2.14.0+cpu"},
        devices=16,
        says=("16 Neuron devices are here, but torch 2.14.0+cpu is a build for the CPU only",),
    ),
    "both_stacks": Box(
        packages={**NATIVE, "torch-xla": "2.8.0"}, environ=own(), folders=PRIVATE, says=("torch-xla 2.8.0 lies beside",)
    ),
    "wrong_torch": Box(
        packages={**NATIVE, "torch": "2.13.0"},
        environ=own(),
        folders=PRIVATE,
        says=("torch-neuronx 2.14.3.0 is built for torch 2.14, here is 2.13.0", "install torch 2.14.*"),
    ),
    "old_torch": Box(packages={"torch": "2.4.1+cpu"}, devices=0, says=("torch 2.4.1+cpu: the simulated device",)),
    "autoload_off": Box(
        environ=own(TORCH_DEVICE_BACKEND_AUTOLOAD="0"),
        folders=PRIVATE,
        says=("keeps torch from loading torch_neuronx",),
    ),
    "simulation_left_on_the_path": Box(
        environ=own(PYTHONPATH="/src/shapeguard/neuron/sim/site"), folders=PRIVATE, says=("PYTHONPATH holds",)
    ),
}


def make(box: Box, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Build the machine; gives the options that lead to it."""
    site, root = folder / "site-packages", folder / "root"
    (root / "dev").mkdir(parents=True)
    (root / "proc").mkdir()
    (root / "proc" / "mounts").write_text(box.mounts.format(tmp=folder))
    for number in range(box.devices):
        (root / "dev" / f"neuron{number}").touch()
    site.mkdir()
    for name, version in box.packages.items():
        package(site, name, version)
    for name, mode in box.folders.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name).chmod(mode)
    for name in [name for name in os.environ if name.startswith((*PREFIXES, "PYTHONPATH", "TORCH_DEVICE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SHAPEGUARD_SYSTEM_ROOT", str(root))
    for name, value in box.environ.items():
        monkeypatch.setenv(name, value.format(tmp=folder))
    options = box.options or ("--min-free", "0")
    return ["doctor", "--site-packages", str(site), *options]


def package(site: Path, name: str, version: str) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.parametrize("name", sorted(BOXES))
def test_a_machine_is_told_what_to_mend_and_nothing_else(
    name: str, shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = BOXES[name]
    command = make(box, tmp_path, monkeypatch)
    ran = shapeguard(*command)
    words = " ".join(ran.out.split())
    for text in box.says:
        assert text in words, ran.out
    found = json.loads(shapeguard(*command, "--json").out)
    wrong = [notice for notice in found["notices"] if notice["level"] != "note"]
    assert len(wrong) == bool(box.says), wrong
    assert ran.code == bool(box.says)
    assert ("nothing to mend" in ran.out) == (not box.says)


def test_there_are_at_least_twenty_machines_and_every_check_speaks_on_one(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(checks)
    heard = set()
    for name, box in BOXES.items():
        with monkeypatch.context() as patch:
            command = make(box, tmp_path / name, patch)
            heard |= {notice["check"] for notice in json.loads(shapeguard(*command, "--json").out)["notices"]}
    assert len(BOXES) >= 20
    assert heard == set(Check.known)


def test_of_a_package_in_two_folders_the_first_wins(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = make(Box(environ=own(), folders=PRIVATE), tmp_path, monkeypatch)
    other = tmp_path / "other"
    other.mkdir()
    package(other, "torch-neuronx", "2.13.3.0")
    ran = shapeguard(*command, "--site-packages", str(other))
    assert ran.code == 1
    words = " ".join(ran.out.split())
    assert "torch-neuronx is installed twice: 2.14.3.0" in words
    assert "wins over 2.13.3.0" in words


def test_each_folder_is_named_with_who_reads_it_and_why(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(packages={**NATIVE, "libneuronxla": "2.2.1"}, environ=xla(), folders=PRIVATE)
    found = json.loads(shapeguard(*make(box, tmp_path, monkeypatch), "--json").out)
    assert {(row["layer"], row["folder"], row["set_by"]) for row in found["folders"]} == {
        ("TorchNeuron", "/tmp/neff_cache", "default"),
        ("TorchNeuron's locks", "/tmp/local_cache", "default"),
        ("torch_xla stack", f"{tmp_path}/neffs", "NEURON_COMPILE_CACHE_URL"),
    }


def test_a_stand_in_for_a_variable_is_one_that_its_stack_reads() -> None:
    for stack, pairs in INSTEAD.items():
        for wrong, right in pairs.items():
            assert stack not in READERS.get(wrong, frozenset())
            name = right.partition("=")[0]
            assert stack in READERS.get(name, frozenset({stack}))


def test_the_doctor_imports_no_torch(tmp_path: Path) -> None:
    code = "import sys; from shapeguard.cli.main import main; main(['doctor']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True).returncode == 0
