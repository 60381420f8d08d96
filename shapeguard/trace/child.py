"""What happens in the traced process when torch loads the simulated device."""

from __future__ import annotations

import atexit
import os
import platform
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shapeguard import __version__
from shapeguard.core.forbid import GATE, VARIABLE, mode_of
from shapeguard.neuron.model.policy import from_environment
from shapeguard.neuron.sim.register import Claimed, register
from shapeguard.trace import api, batches, breaks, models, weights
from shapeguard.trace.forwards import Forwards
from shapeguard.trace.parent import end_with_parent
from shapeguard.trace.placement import Placement
from shapeguard.trace.recorder import Recorder
from shapeguard.trace.sites import Sites
from shapeguard.trace.steps import Steps
from shapeguard.trace.tokenizers import Tokenizers


def boot(environ: Mapping[str, str]) -> Claimed:
    """Claim the device and start recording, as the parent asked for in the environment."""
    end_with_parent(environ)
    target = environ.get("SHAPEGUARD_TARGET", "trn2")
    inner = environ.get("SHAPEGUARD_INNER", "cpu")
    # A launcher gives each of its processes one device by number: there must be as many.
    num_devices = max(int(environ.get("SHAPEGUARD_DEVICES") or 1), int(environ.get("LOCAL_WORLD_SIZE") or 1))
    sites = Sites(environ.get("SHAPEGUARD_ROOT") or str(Path.cwd()))
    start = {
        "world_size": int(environ.get("WORLD_SIZE") or 1),
        "warmup_steps": int(environ.get("SHAPEGUARD_WARMUP_STEPS") or 2),
        "program": [Path(word).name if os.sep in word else word for word in getattr(sys, "argv", [])],
        "device": {
            "kind": "simulated",
            "target": target,
            "inner": inner,
            "num_devices": num_devices,
            "toolchain": toolchain(environ),
            "flags": from_environment(environ, target=target).flags,
        },
    }
    GATE.mode = mode_of(environ.get(VARIABLE, ""))
    folder = Path(environ["SHAPEGUARD_RUN_DIR"])
    recorder = Recorder(folder, rank=int(environ.get("RANK") or 0), sites=sites, start=start)
    # Before anything imports Dynamo: it takes `Module.__call__` as it finds it for the plain one.
    steps = watch_steps(recorder, environ.get("SHAPEGUARD_MAX_STEPS", ""))
    if until := environ.get("SHAPEGUARD_UNTIL"):
        recorder.awaited.update(Path(until).read_text(encoding="utf-8").split())
        steps.is_complete = lambda: not recorder.awaited
    claimed = register(
        sink=recorder,
        policy=from_environment(environ, target=target),
        inner="meta" if inner == "meta" else "cpu",
        num_devices=num_devices,
        is_alone=bool(environ.get("SHAPEGUARD_WORLD")),
    )
    if environ.get("SHAPEGUARD_KEEP_GRAPHS") == "1":
        claimed.device.keep_graph = partial(keep_graph, folder / "graphs" / f"rank-{recorder.rank}")
    batches.watch(recorder)
    breaks.watch(recorder)
    watch_models(recorder, steps)
    if int(environ.get("WORLD_SIZE") or 1) > 1:
        steps.on_inputs = Forwards(recorder).note
    if environ.get("SHAPEGUARD_STUB_WEIGHTS") == "1":
        uncounted = claimed.device.counter.paused
        models.when_defined("PreTrainedModel", partial(weights.stub, uncounted=uncounted))

    def totals() -> None:
        claimed.device.counter.flush()
        if claimed.at_end is not None:
            claimed.at_end()

    end_with(recorder, totals)
    return claimed


def keep_graph(folder: Path, key: str, text: str) -> None:
    """Write down a graph's text under its key."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / f"{key}.txt").write_text(text + "\n", encoding="utf-8")


def toolchain(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the versions that a run depends on."""
    found = {"python": platform.python_version(), "shapeguard": __version__}
    if compiler := environ.get("SHAPEGUARD_SIM_COMPILER"):
        found["neuronx-cc"] = compiler
    for name in ("torch", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def watch_models(recorder: Recorder, steps: Steps) -> None:
    """Note where transformers' models are made and moved, and which lines call its tokenizers."""
    placement, tokenizers = Placement(recorder), Tokenizers(recorder.sites)

    def on_forward(module: Any) -> None:
        tokenizers.watch()
        placement.look(module)

    def on_base(base: type) -> None:
        tokenizers.watch()
        placement.watch(base)

    steps.on_forward = on_forward
    models.when_defined("PreTrainedModel", on_base)


def watch_steps(recorder: Recorder, max_steps: str) -> Steps:
    """Find the steps of this process, and end it after as many as were asked for."""

    def stop() -> None:
        recorder.stopped = True
        if threading.current_thread() is not threading.main_thread():
            # An exit raised here would end only this thread.
            recorder.end("steps")
            os._exit(0)
        raise SystemExit(0)

    steps = Steps(recorder, max_steps=int(max_steps) if max_steps else None, stop=stop)
    steps.install()
    recorder.on_region = steps.region_begins
    api.follow(steps.mark)
    return steps


def end_with(recorder: Recorder, totals: Callable[[], None]) -> None:
    """Write totals and the last line when the process ends, and how it did."""
    plain_hook = sys.excepthook
    how = ["ok"]

    def hook(*args: Any) -> None:
        how[0] = "exception"
        plain_hook(*args)

    sys.excepthook = hook
    pid = os.getpid()

    def finish() -> None:
        # A forked worker runs this too when it ends by `sys.exit`; it has counted nothing of its own.
        if os.getpid() == pid:
            totals()
            recorder.end("steps" if recorder.stopped else how[0])

    atexit.register(finish)
