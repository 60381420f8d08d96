"""Variables that are set and that nobody here reads."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from shapeguard.doctor.check import Check, Notice
from shapeguard.doctor.machine import Machine
from shapeguard.doctor.variables import INSTEAD, PREFIXES, READERS, RUNTIME, readers

_STACKS = {"native": "TorchNeuron (native)", "xla": "the torch_xla stack"}


class Unread(Check):
    """A variable of the other stack, or one that is spelt wrongly."""

    name = "unread"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Look at each variable of Neuron's."""
        for name in sorted(machine.environ):
            if not name.startswith(PREFIXES):
                continue
            layers = readers(name)
            if RUNTIME in layers or layers & machine.stacks or (layers and not machine.stacks):
                continue
            yield self._unknown(name) if not layers else self._other(name, machine)

    def _unknown(self, name: str) -> Notice:
        close = get_close_matches(name, list(READERS), n=1, cutoff=0.75)
        return Notice(
            subject=name,
            message=f"{name} is set, but no Neuron stack that is known here reads it",
            hint=f"did you mean {close[0]}?" if close else "unset it, or check its name in AWS's documentation",
        )

    def _other(self, name: str, machine: Machine) -> Notice:
        here = next(stack for stack in ("native", "xla") if stack in machine.stacks)
        right = INSTEAD[here].get(name, "")
        (reader, *_) = sorted(readers(name))
        return Notice(
            subject=name,
            message=f"{name} is set, but read by {_STACKS[reader]} only; installed is {_STACKS[here]}",
            hint=f"{_STACKS[here]} has {right}" if right else "unset it",
        )
