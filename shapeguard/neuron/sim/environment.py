"""Follows the environment variables that TorchNeuron reads anew for every kernel (facts, section 1.1)."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

from shapeguard.neuron.model.policy import KEYED, from_environment
from shapeguard.neuron.sim.device import Device

_CHANGES = ("os.putenv", "os.unsetenv")


def follow(device: Device) -> None:
    """Give every key anew once the program changes the compiler's flags."""
    names = {os.fsencode(name) for name in KEYED}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        # Called for every audited event of the process: the comparison comes first.
        if event in _CHANGES and os.fsencode(args[0]) in names:
            # The new value is not in `os.environ` yet; it is read at the next call.
            device.counter.forget()
            device.counter.stale = True

    def refresh() -> None:
        now = from_environment(os.environ, target=device.policy.target)
        kept = replace(
            device.policy,
            compiler_flags=now.compiler_flags,
            opt_level_eager=now.opt_level_eager,
            opt_level_compile=now.opt_level_compile,
            logical_cores=now.logical_cores,
        )
        device.policy = device.counter.policy = kept

    device.counter.refresh = refresh
    sys.addaudithook(hook)
