"""Runs many statements on the device in one process: importing torch takes longer than all of them.

Run as a program it reads {name: program} as JSON from the standard input and prints {name: what it did}.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__)
START = "x = torch.ones(4, 8).to('neuron'); y = torch.ones(4, 8).to('neuron')"


def outcomes(folder: Path, programs: dict[str, str], *, inner: str = "cpu", **environ: str) -> dict[str, Any]:
    """Run the programs; gives by name: ops, keys, host, moved, uncertain, prints, error."""
    from shapeguard.trace.settings import Settings, environment

    run = folder / f"run-{len(list(folder.iterdir()))}"
    run.mkdir()
    base = {**os.environ, "OMP_NUM_THREADS": "1", **environ}
    env = environment(Settings(inner=inner), folder=run, root=folder, base=base)
    done = subprocess.run(
        [sys.executable, str(HERE)], env=env, input=json.dumps(programs), capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found["events"] = [
        json.loads(line) for file in sorted(run.glob("*.jsonl")) for line in file.read_text().splitlines()
    ]
    return found


def _lines(program: str) -> str:
    """Give statements one a line; a block keeps its own lines."""
    return "\n".join(line if line.startswith(" ") else line.replace("; ", "\n") for line in program.split("\n"))


def _main() -> None:
    import torch
    from torch import nn
    from torch_neuronx import _C, _device, clear_op_tracking, get_fallback_ops

    counter = _device.claim().device.counter
    emit, events = counter.sink.emit, []
    counter.sink.emit = lambda event: (events.append(dict(event)), emit(event))
    found = {}
    for name, program in json.load(sys.stdin).items():
        names: dict[str, Any] = {"torch": torch, "nn": nn, "_C": _C}
        exec(_lines(START), names)
        _C._clear_compilation_cache()
        clear_op_tracking()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.neuron.reset_dynamo_metrics()
        events.clear()
        before = {op: tuple(row) for op, row in counter.fallbacks.items()}
        printed, error = io.StringIO(), ""
        with contextlib.redirect_stdout(printed):
            try:
                exec(_lines(program), names)
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
        eager = [event for event in events if event["type"] == "compile" and event["kind"] in ("eager", "collective")]
        moved = {}
        for op, (calls, size) in counter.fallbacks.items():
            old = before.get(op, (0, 0))
            if calls != old[0]:
                moved[op] = [calls - old[0], size - old[1]]
        found[name] = {
            "ops": [event["op"] for event in eager],
            "graphs": [
                [event["kind"], event["outcome"]]
                for event in events
                if event["type"] == "compile" and event["kind"] not in ("eager", "collective")
            ],
            "keys": sorted(key.partition("_trn2")[0] for key in _C._get_all_cache_keys()),
            "host": get_fallback_ops(),
            "moved": moved,
            "uncertain": sum(event["certainty"] == "±" for event in eager),
            "uncertain_graphs": sum(event.get("certainty") == "±" for event in events)
            - sum(event["certainty"] == "±" for event in eager),
            "prints": printed.getvalue(),
            "error": error,
        }
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    _main()
