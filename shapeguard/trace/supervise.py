"""Trace a program: start it unchanged with the simulated device, wait, keep what it wrote. Never imports torch."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from shapeguard.core.errors import DeviceError, UsageError
from shapeguard.core.events import SCHEMA
from shapeguard.core.neffs import FIRST_NATIVE, version_order
from shapeguard.runs.live import followed
from shapeguard.runs.stream import STARTED, SUMMARY, read_run
from shapeguard.runs.summary import Ended, Summary, document, summarise
from shapeguard.trace import folder as folders
from shapeguard.trace.probe import Installed, device_nodes, installed
from shapeguard.trace.program import Program, shareable
from shapeguard.trace.relay import run
from shapeguard.trace.settings import Settings, environment
from shapeguard.trace.world import World, refuse_launcher
from shapeguard.trace.world import environment as rank_environment

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A program that was run to its end, and what its run came to."""

    exit_code: int
    """The program's own; 128+n where signal n ended it."""
    folder: Path
    summary: Summary


def trace(
    program: Program, settings: Settings, *, run_dir: Path | None = None, world: World | None = None, say: Say
) -> Traced:
    """Run a program and judge its run; what the user must know before it starts goes to `say`.

    In a simulated world it runs once for each rank that was asked for, one after the other.
    """
    if world is not None:
        refuse_launcher(program.argv)
    root = Path.cwd().resolve()
    settings = _checked(settings, installed(program.interpreter), say)
    folder = folders.make(run_dir, name=program.name, root=root)
    started = _started(program, settings, world, root)
    folders.claim(folder, started)
    begin = time.monotonic()
    env = environment(settings, folder=folder, root=root, base=os.environ)
    with followed(folder, _terminal()):
        code = run(program.argv, env) if world is None else _run_ranks(program, world, env, say)
    ended = Ended(exit_code=code, signal=_signal(code), wall_s=round(time.monotonic() - begin, 3))
    return Traced(exit_code=code, folder=folder, summary=finish(folder, started, ended))


def _run_ranks(program: Program, world: World, env: Mapping[str, str], say: Say) -> int:
    """Run the ranks of a simulated world; the first that fails ends them, its exit code is that of all."""
    for rank in world.ranks:
        if len(world.ranks) > 1:
            say(f"rank {rank} of {world.size}")
        code = run(program.argv, rank_environment(world, rank, env))
        if code:
            return code
    return 0


def finish(folder: Path, started: Mapping[str, object], ended: Ended) -> Summary:
    """Judge a run whose program has ended and write `summary.json`, last."""
    end = {"exit_code": ended.exit_code, "signal": ended.signal, "wall_s": ended.wall_s}
    _write(folder / STARTED, {**started, "ended": end})
    summary = summarise(read_run(folder), ended)
    _write(folder / SUMMARY, document(summary))
    return summary


def _write(path: Path, value: Mapping[str, object]) -> None:
    try:
        folders.replace(path, json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        if not path.parent.is_dir():
            raise UsageError(
                f"the run folder {path.parent.name} is gone: it was deleted while the program ran",
                hint="give --run-dir a folder that the program does not clean up",
            ) from error
        raise UsageError(
            f"cannot write {path}: {error.strerror}", hint="the run's event files are as they were"
        ) from error


def _checked(settings: Settings, found: Installed | None, say: Say) -> Settings:
    """Settle which device it is, and refuse what this machine cannot do before anything is started."""
    if found is not None and not found.torch:
        raise DeviceError("torch is not installed here", hint="python -m pip install 'shapeguard[trace]'")
    device = settings.device
    real = found.neuron if found else ""
    if device == "neuron" and (reason := _no_device(real)):
        raise DeviceError(reason, hint="use --device sim, or see `shapeguard doctor`")
    if device == "auto":
        device = "sim" if _no_device(real) else "neuron"
    if device == "neuron":
        say(f"note: this run is on the Neuron device, with torch_neuronx {real}; --device sim simulates it")
    if device == "sim" and real:
        say(f"note: the simulated device hides the installed torch_neuronx {real} from this program")
    return replace(settings, device=device)


def _no_device(version: str) -> str:
    """Say why a program cannot be traced on a real device here; empty where it can."""
    if not version:
        return "there is no torch_neuronx and no device here"
    if version_order(version)[0][:2] < FIRST_NATIVE:
        return f"torch_neuronx {version} is the torch_xla stack, whose runs are read with `shapeguard import`"
    return "" if device_nodes() else f"torch_neuronx {version} is installed, but the driver shows no Neuron device"


def _started(program: Program, settings: Settings, world: World | None, root: Path) -> dict[str, object]:
    device: dict[str, object] = {"kind": settings.device, "target": settings.target, "inner": settings.inner}
    if world is not None:
        device["world"] = {"sizes": world.text, "ranks": list(world.ranks)}
    return {
        "schema": SCHEMA,
        "command": list(shareable(program.shown, root)),
        "device": device,
        "warmup_steps": settings.warmup_steps,
    }


def _terminal() -> Callable[[str], object] | None:
    """Give what writes to a person's terminal; None where standard error is none, or is a log of CI."""
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("CI") or os.environ.get("TERM") == "dumb":
        return None

    def write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    return write


def _signal(code: int) -> str:
    names: Iterable[signal.Signals] = signal.Signals
    return next((number.name for number in names if code == 128 + number), "")
