"""Runs and locks made by hand, so that a test of the lock costs no trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TOOLCHAIN = {"python": "3.11.7", "shapeguard": "0.1.0", "torch": "2.13.0+cpu"}
CONFIG = '[jobs.train]\ncommand = ["train.py"]\n'


def key(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()


def site(line: int = 3) -> dict[str, Any]:
    return {"file": "train.py", "line": line, "function": "main"}


def graph(number: int, shape: Sequence[int], *, step: int = 1, kind: str = "forward", model: str = "Net") -> list[Any]:
    """A region and its one graph, as the tracer writes them."""
    inputs = [{"path": "ids", "shape": list(shape), "dtype": "int64", "layout": ""}]
    common = {"type": "compile", "outcome": "compiled", "model": model, "step": step, "phase": "train"}
    common |= {"phase_step": step, "region": number, "inputs": inputs, "nodes": 10, "site": site()}
    code = {"file": "model.py", "line": 1, "function": "forward"}
    region = {**common, "n": 2 * number, "kind": "region", "key": f"region {number}", "code": code, "constants": []}
    return [region, {**common, "n": 2 * number + 1, "kind": kind, "key": key(kind, tuple(shape), model), "name": "g"}]


def eager(number: int, op: str, shape: Sequence[int]) -> list[Any]:
    inputs = [{"path": "self", "shape": list(shape), "dtype": "float32", "layout": ""}]
    event = {"type": "compile", "n": 10**6 + number, "kind": "eager", "op": op, "outcome": "compiled", "inputs": inputs}
    return [{**event, "key": key(op, tuple(shape))[:32], "constants": [], "step": 1, "phase": "train", "phase_step": 1}]


def write_run(
    folder: Path,
    events: Iterable[dict[str, Any]],
    *,
    exit_code: int | None = 0,
    toolchain: dict[str, str] = TOOLCHAIN,
    is_cut: bool = False,
) -> Path:
    """Write the folder of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    device = {"kind": "simulated", "target": "trn2", "inner": "meta", "num_devices": 1, "toolchain": toolchain}
    start = {"type": "start", "schema": 1, "rank": 0, "world_size": 1, "pid": 1, "warmup_steps": 2, "device": device}
    rows = [start, *events, *([] if is_cut else [{"type": "end", "exit": "ok", "steps": 8}])]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rank-0.pid-1.jsonl").write_text(text)
    ended = {"exit_code": exit_code, "signal": "", "wall_s": 1.0}
    started = {"schema": 1, "command": ["train.py"], "device": device, "warmup_steps": 2, "ended": ended}
    (folder / "run.json").write_text(json.dumps(started))
    return folder


def graphs(*shapes: Sequence[int]) -> list[dict[str, Any]]:
    return [event for number, shape in enumerate(shapes, 1) for event in graph(number, shape)]
