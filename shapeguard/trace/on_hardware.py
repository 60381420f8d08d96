"""What happens in the traced process on a real Neuron device: the adapter follows the torch_neuronx that is installed.

Nothing of the simulated device is claimed here. Never run on Trainium so far: tried on a stand-in for torch_neuronx.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shapeguard.core.forbid import GATE, VARIABLE, mode_of
from shapeguard.neuron.hardware.adapter import Adapter
from shapeguard.neuron.model.policy import from_environment
from shapeguard.trace import batches, breaks
from shapeguard.trace.child import end_with, keep_graph, watch_models, watch_steps
from shapeguard.trace.child import toolchain as toolchain_of
from shapeguard.trace.forwards import Forwards
from shapeguard.trace.recorder import Recorder
from shapeguard.trace.sites import Sites

_PACKAGES = {"torch-neuronx": "torch-neuronx", "neuronx-cc": "neuronx-cc", "nki": "nki"}
_TOLD: list[Adapter] = []


class HardwareRecorder(Recorder):
    """A recorder that lets the adapter look at what compiled whenever a step begins."""

    on_step: Callable[[], None] | None = None

    def numbered(self, event: Mapping[str, Any]) -> int:
        """Write one event; gives the number of the compile lines so far, by which later lines name this one."""
        with self._lock:
            self.emit(event)
            return self._count

    def begin_step(self, phase: str) -> None:
        """Begin a step of a phase, after all that belongs to the last one."""
        if self.on_step is not None:
            self.on_step()
        super().begin_step(phase)


class Numbered:
    """The recorder as the adapter's sink, which learns the number of each line."""

    def __init__(self, recorder: HardwareRecorder) -> None:
        self.emit = recorder.numbered
        self.site = recorder.site
        self.region_begins = recorder.region_begins


def boot(environ: Mapping[str, str]) -> None:
    """Start recording and load torch_neuronx under the adapter; called by torch at the end of its import."""
    if _TOLD:
        return
    target = environ.get("SHAPEGUARD_TARGET", "trn2")
    policy = from_environment(environ, target=target)
    sites = Sites(environ.get("SHAPEGUARD_ROOT") or str(Path.cwd()))
    recorder = HardwareRecorder(
        Path(environ["SHAPEGUARD_RUN_DIR"]),
        rank=int(environ.get("RANK") or 0),
        sites=sites,
        start=_start(environ, target, policy.flags),
    )
    GATE.mode = mode_of(environ.get(VARIABLE, ""))
    # Before anything imports Dynamo: it takes `Module.__call__` as it finds it for the plain one.
    steps = watch_steps(recorder, environ.get("SHAPEGUARD_MAX_STEPS", ""))
    adapter = Adapter(Numbered(recorder), policy, site=recorder.site)
    _TOLD.append(adapter)
    adapter.before_import()
    if environ.get("SHAPEGUARD_KEEP_GRAPHS") == "1":
        adapter.graphs.keep_graph = partial(keep_graph, recorder.folder / "graphs" / f"rank-{recorder.rank}")
    batches.watch(recorder)
    breaks.watch(recorder)
    watch_models(recorder, steps)
    if int(environ.get("WORLD_SIZE") or 1) > 1:
        steps.on_inputs = Forwards(recorder).note
    _import_neuron(recorder)
    adapter.attach()
    recorder.on_step = adapter.step

    def totals() -> None:
        # Nothing that a release of torch_neuronx does otherwise may cost the run its last line.
        with suppress(Exception):
            adapter.end()

    end_with(recorder, totals)


def _import_neuron(recorder: Recorder) -> None:
    """Import the package now, so that nothing compiles before it is followed."""
    if "torch_neuronx" in sys.modules:
        return  # the program imports it itself and is in the middle of it
    try:
        import_module("torch_neuronx")
    except Exception as error:
        # Torch imports it next by its own entry point and tells the program.
        message = f"torch_neuronx cannot be imported: {type(error).__name__}: {error}"
        recorder.emit({"type": "problem", "code": "no-neuron", "message": message})
        return
    with suppress(ImportError):
        import_module("torch_neuronx.metrics")


def _start(environ: Mapping[str, str], target: str, flags: list[str]) -> dict[str, Any]:
    toolchain = toolchain_of({})
    for name, package in _PACKAGES.items():
        with suppress(PackageNotFoundError):
            toolchain[name] = version(package)
    return {
        "world_size": int(environ.get("WORLD_SIZE") or 1),
        "warmup_steps": int(environ.get("SHAPEGUARD_WARMUP_STEPS") or 2),
        "program": [Path(word).name if os.sep in word else word for word in getattr(sys, "argv", [])],
        "device": {"kind": "real", "target": target, "inner": "", "toolchain": toolchain, "flags": flags},
    }
