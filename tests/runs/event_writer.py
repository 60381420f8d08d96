"""Write event files as a traced process would, and judge them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shapeguard.runs.stream import read_run
from shapeguard.runs.summary import Summary, summarise


def site(line: int, file: str = "train.py") -> dict[str, Any]:
    return {"file": file, "line": line, "function": "main"}


def tensor(path: str, *shape: int, dtype: str = "int64", **more: Any) -> dict[str, Any]:
    return {"path": path, "shape": list(shape), "dtype": dtype, "layout": "", **more}


class Writer:
    """One process's event file."""

    def __init__(self, folder: Path, rank: int = 0, world_size: int = 1, pid: int = 7) -> None:
        self.path = folder / f"rank-{rank}.pid-{pid}.jsonl"
        self.folder = folder
        self.step_number = 0
        self.phase = "train"
        self.phase_steps: dict[str, int] = {}
        self.n = 0
        self.regions = 0
        self.put(
            "start",
            schema=1,
            rank=rank,
            world_size=world_size,
            pid=pid,
            warmup_steps=2,
            device={"kind": "sim", "target": "trn2", "inner": "cpu", "toolchain": {"torch": "2.13.0"}},
        )

    def put(self, type: str, **fields: Any) -> None:
        line = {"type": type, "step": self.step_number, "phase": self.phase, **fields}
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def step(self, phase: str = "train") -> None:
        self.phase = phase
        self.step_number += 1
        self.phase_steps[phase] = self.phase_steps.get(phase, 0) + 1
        self.put("step", phase_step=self.phase_steps[phase])

    def compile(self, kind: str, outcome: str = "compiled", **fields: Any) -> None:
        self.n += 1
        self.put(
            "compile",
            n=self.n,
            kind=kind,
            outcome=outcome,
            phase_step=self.phase_steps.get(self.phase, 0),
            **fields,
        )

    def region(self, *inputs: dict[str, Any], kinds: tuple[str, ...] = ("inference",), **fields: Any) -> None:
        self.regions += 1
        line = fields.pop("line", 20)
        modes = {"grad": False, "inference": False, "training": False, "autocast": "", **fields.pop("modes", {})}
        fields = {"code": site(5), "site": site(line), "constants": [], "guard": "", **fields}
        key = json.dumps([inputs, modes, fields["constants"], fields.get("instance")])
        for kind in kinds:
            name = f"model_{self.regions}_{kind}"
            self.compile(kind, region=self.regions, name=name, key=f"{kind} {key}", inputs=list(inputs), nodes=9)
        self.compile("region", region=self.regions, key=key, inputs=list(inputs), modes=modes, **fields)

    def eager(self, op: str, *inputs: dict[str, Any], line: int = 20, **fields: Any) -> None:
        key = json.dumps([op, inputs, fields.get("constants")])
        self.compile("eager", op=op, inputs=list(inputs), key=key, site=site(line), **fields)

    def end(self, exit: str = "ok") -> None:
        self.put("end", exit=exit, steps=self.step_number)

    def judge(self) -> Summary:
        return summarise(read_run(self.folder))
