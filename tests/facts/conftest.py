"""The facts run statements in the traced process, as the tests of the device do."""

from __future__ import annotations

from tests.neuron.conftest import on_device

__all__ = ["on_device"]
