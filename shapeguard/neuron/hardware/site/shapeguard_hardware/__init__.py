"""Put on PYTHONPATH while a program is traced on a real Neuron device: torch loads it before torch_neuronx."""

from __future__ import annotations


def _autoload() -> None:
    """Follow the installed torch_neuronx; called by torch at the end of its import."""
    import os

    from shapeguard.trace.on_hardware import boot

    boot(os.environ)
