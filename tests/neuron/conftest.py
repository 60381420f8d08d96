"""Runs Python on the simulated device, in a process of its own: a process can claim the device only once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shapeguard.trace.settings import Settings, environment

RunOnDevice = Callable[..., tuple[str, list[dict[str, Any]]]]


@pytest.fixture
def on_device(tmp_path: Path) -> RunOnDevice:
    """Run a program (a file or a text) on the device; gives what it printed and its events."""

    def run(program: Path | str, *args: str, inner: str = "cpu", **environ: str) -> tuple[str, list[dict[str, Any]]]:
        return run_on_device(tmp_path, program, *args, inner=inner, **environ)

    return run


def run_on_device(
    folder: Path, program: Path | str, *args: str, inner: str = "cpu", timeout: float = 300, **environ: str
) -> tuple[str, list[dict[str, Any]]]:
    """Run a program with `folder` as its run folder."""
    events = folder / f"events-{len(list(folder.iterdir()))}"
    events.mkdir()
    path = program if isinstance(program, Path) else folder / "program.py"
    if isinstance(program, str):
        path.write_text(program)
    settings = Settings(inner=inner)
    env = environment(settings, folder=events, root=folder, base={**os.environ, "OMP_NUM_THREADS": "1", **environ})
    done = subprocess.run([sys.executable, str(path), *args], env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for file in events.glob("*.jsonl") for line in file.read_text().splitlines()]
    return done.stdout, [json.loads(line) for line in lines]


def eager(events: list[dict[str, Any]]) -> list[str]:
    """Name the eager operators in the order of their compiles, one for each key."""
    return [event["op"] for event in events if event["type"] == "compile" and event["kind"] == "eager"]
