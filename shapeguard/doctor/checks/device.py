"""Whether there is a device, a driver, and a torch that reaches it."""

from __future__ import annotations

from collections.abc import Iterable

from shapeguard.doctor.check import Check, Level, Notice
from shapeguard.doctor.machine import Machine


class Device(Check):
    """A package without a device, a device without a package, a torch for another one."""

    name = "device"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Compare what the driver shows with what is installed."""
        torch = machine.package("torch")
        if machine.stacks and not machine.devices:
            state = f"the driver ({machine.driver}) shows none" if machine.driver else "the driver is not loaded"
            yield Notice(
                subject="/dev/neuron*",
                message=f"a Neuron stack is installed, but there is no Neuron device: {state}",
                hint="install aws-neuronx-dkms on the host and, in a container, pass --device=/dev/neuron0",
            )
        if machine.devices and not machine.stacks:
            what = "no torch-neuronx is installed"
            if torch is not None and "+cpu" in torch.version:
                what = f"torch {torch.version} is a build for the CPU only"
            yield Notice(
                subject="torch-neuronx",
                message=f"{len(machine.devices)} Neuron devices are here, but {what}: programs would run on the CPU",
                hint="install torch-neuronx from AWS's index",
            )
        if not machine.stacks and torch is not None and not machine.devices:
            kind = "a build for the CPU" if "+cpu" in torch.version else "here"
            yield Notice(
                subject="torch",
                message=f"no Neuron stack and no device; torch {torch.version} is {kind}: runs are simulated",
                level=Level.NOTE,
            )
        if machine.value("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0" and "native" in machine.stacks:
            yield Notice(
                subject="TORCH_DEVICE_BACKEND_AUTOLOAD",
                message="TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps torch from loading torch_neuronx: no device `neuron`",
                hint="unset it, or import torch_neuronx in the program",
            )
