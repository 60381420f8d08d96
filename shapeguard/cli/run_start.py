"""Starts a runner: in place inside a trace or under torchrun, else as a child, traced on the simulated device."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from shapeguard.cli.options import current_output, emit
from shapeguard.cli.run_locked import lock_file, read_lock, unlocked
from shapeguard.core.errors import DeviceError, ShapeguardError
from shapeguard.run.settings import FAILED, Infer, Train


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What only a run on the simulated device heeds."""

    run_dir: Path | None
    inner: str
    target: str
    stub_weights: bool
    no_cache: bool
    locked: bool


def start(settings: Infer | Train, traced: Traced, *, warmup_steps: int, scratch: Path) -> int:
    """Run it and give the exit code; the report of a simulated run follows on standard error."""
    from shapeguard.run import launch
    from shapeguard.trace.relay import run

    launch.check_model(settings.model)
    launch.check_world(settings, os.environ)
    settings = replace(settings, device=launch.device(settings.device, os.environ))
    is_rank, is_traced = launch.is_rank(os.environ), launch.is_traced(os.environ)
    if traced.locked and (is_rank or is_traced or settings.device == "neuron"):
        raise DeviceError(
            "--locked judges a run on the simulated device that it starts itself",
            hint="leave out `trace` and torchrun, or judge the run with `shapeguard check --run JOB=FOLDER`",
        )
    if is_rank:
        scratch.rmdir()
        launch.replace_this_process(launch.argv(settings, os.environ))
    settings = replace(settings, scratch=str(scratch))
    if settings.device == "sim" and not is_traced:
        code = _simulate(settings, traced, warmup_steps=warmup_steps)
    else:
        code = run(launch.argv(settings, os.environ), dict(os.environ))
    return _refused(scratch) or code


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Give a folder that is gone when the run is over."""
    return tempfile.TemporaryDirectory(prefix="shapeguard-")


def _simulate(settings: Infer | Train, traced: Traced, *, warmup_steps: int) -> int:
    from shapeguard.run import launch
    from shapeguard.runs.remember import remember
    from shapeguard.runs.view import report
    from shapeguard.trace.program import Program
    from shapeguard.trace.settings import Settings
    from shapeguard.trace.supervise import trace

    name = "infer" if isinstance(settings, Infer) else "train"
    command = tuple(launch.argv(settings, os.environ))
    program = Program(argv=command, shown=("run", *_own_words(name)), name=name, interpreter=sys.executable)
    wanted = Settings(
        inner=traced.inner,
        target=traced.target,
        stub_weights=traced.stub_weights,
        warmup_steps=warmup_steps,
        num_devices=settings.world_size,
    )
    lock = read_lock() if traced.locked else None
    done = trace(program, wanted, run_dir=traced.run_dir, say=_say)
    if _failure(Path(settings.scratch)) or done.exit_code in (2, 3):
        return done.exit_code  # a mistake, which has been told; nothing was run that a report could be about
    if not traced.no_cache and (note := remember(done.folder, os.environ)):
        _say(note)
    try:
        emit(report(done.summary, folder=_shown(done.folder)), current_output())
    except (ShapeguardError, OSError) as error:
        _say(f"error: {error}")
        return done.exit_code or 2
    new = unlocked(done.folder, lock) if lock is not None and not done.exit_code else []
    if new:
        _say(
            "\n".join(
                [f"error: {len(new)} graph{'s' * (len(new) > 1)} compiled that {lock_file()} does not name:", *new]
            )
        )
        _say("hint: `shapeguard lock` writes them into it, where a job of the configuration runs this command")
    return done.exit_code or int(bool(new))


def _own_words(name: str) -> list[str]:
    """Give the words as the user wrote them, from the runner's name on."""
    words = sys.argv[1:]
    return words[words.index(name) :] if name in words else [name]


def _failure(scratch: Path) -> Mapping[str, object] | None:
    file = scratch / FAILED
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _refused(scratch: Path) -> int:
    """Tell the mistake that ranks left behind, and give its exit code."""
    told = _failure(scratch)
    if told is None:
        return 0
    _say(f"error: {told['message']}" + (f"\nhint: {told['hint']}" if told["hint"] else ""))
    return int(str(told["exit_code"]))


def _shown(folder: Path) -> str:
    here = Path.cwd().resolve()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _say(text: str) -> None:
    click.echo(text, err=True)
