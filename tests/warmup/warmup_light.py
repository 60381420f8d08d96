"""Recipes that start in a fraction of a second: a program that asks the simulated NEFF cache for graphs without torch.

Run as a program it does what a traced one does, through the same recorder, cache and folder of files. As a module it
makes projects of such jobs, with their lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapeguard import __version__
from shapeguard.core.cost import compile_s
from shapeguard.core.events import Outcome
from shapeguard.core.forbid import GATE, VARIABLE, mode_of

PROGRAM = Path(__file__)
NAME = "light.py"


@dataclass(frozen=True, kw_only=True)
class Light:
    """One job: its graphs with the number of their operators, and how it behaves."""

    graphs: Mapping[str, int]
    words: tuple[str, ...] = ()
    """`hold=200` MB, `fail=FILE` once, `rest=1.5` seconds, `log=FILE` for its ends, `spawn=FILE` a child,
    `second=FILE` with a graph that only the second rank needs."""
    world: int = 1


def key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def project(folder: Path, jobs: Mapping[str, Light]) -> Path:
    """Make a project with jobs and their lock."""
    from shapeguard.checks.job import Job
    from shapeguard.checks.project import here
    from shapeguard.checks.settings import JobSettings
    from shapeguard.lock.values import Lock, LockedGraph
    from shapeguard.lock.write import text

    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(PROGRAM.read_bytes())
    blocks, locked, owners = [], {}, dict[str, list[str]]()
    nodes: dict[str, int] = {}
    for name, job in jobs.items():
        command = (NAME, *(f"{graph}:{size}" for graph, size in job.graphs.items()), *job.words)
        blocks.append(f"[jobs.{name}]\ncommand = {json.dumps(command)}\nworld = {job.world}\n")
        locked[name] = Job(name=name, settings=JobSettings(command=command, world=job.world), root=folder).locked
        nodes |= job.graphs
        for graph in job.graphs:
            owners.setdefault(graph, []).append(name)
    graphs = [
        LockedGraph(
            kind="forward",
            key=key(name),
            model="Light",
            inputs=(f"x 4×{nodes[name]} int64",),
            nodes=nodes[name],
            jobs=tuple(jobs),
        )
        for name, jobs in owners.items()
    ]
    toolchain = here()
    whole = Lock(toolchain=toolchain, jobs=locked, graphs={graph.id: graph for graph in graphs})
    (folder / "shapeguard.toml").write_text("\n".join(blocks))
    (folder / "shapeguard.lock").write_text(text(whole))
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    out = ("CI", "SHAPEGUARD_NO_CACHE", "SHAPEGUARD_OUTPUT_FORMAT", "TORCH_NEURONX_NEFF_CACHE_DIR")
    env = {name: value for name, value in os.environ.items() if name not in out}
    return env | {"SHAPEGUARD_CACHE_DIR": str(folder / ".cache"), "OMP_NUM_THREADS": "1", **more}


def warmup(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `shapeguard warmup` in a project."""
    command = [sys.executable, "-m", "shapeguard", "warmup", *words]
    return subprocess.run(command, cwd=folder, env=environment(folder, **more), capture_output=True, text=True)


def journal(folder: Path) -> list[dict[str, Any]]:
    file = folder / ".shapeguard" / "warmup" / "journal.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.strip()]


def parents(pid: int) -> list[int]:
    """Give the processes above one."""
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def main(words: Iterable[str]) -> int:
    """Ask for graphs, one a step."""
    from shapeguard.neuron.model.policy import from_environment
    from shapeguard.neuron.sim.metrics import Counters
    from shapeguard.neuron.sim.neff_cache import Forbidden, NeffCache
    from shapeguard.neuron.sim.persistent import store_for
    from shapeguard.trace.parent import end_with_parent
    from shapeguard.trace.recorder import Recorder
    from shapeguard.trace.sites import Sites

    end_with_parent(os.environ)
    GATE.mode = mode_of(os.environ.get(VARIABLE, ""))
    policy = from_environment(os.environ)
    rank = int(os.environ.get("RANK", "0"))
    device = {"kind": "simulated", "target": "trn2", "inner": "meta", "flags": policy.flags, "toolchain": toolchain()}
    start = {
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
        "warmup_steps": 2,
        "program": [NAME],
        "device": device,
    }
    recorder = Recorder(Path(os.environ["SHAPEGUARD_RUN_DIR"]), rank=rank, sites=Sites(str(Path.cwd())), start=start)
    recorder.model = "Light"
    neffs = NeffCache(store_for(policy), Counters(is_enabled=False), compiler=policy.compiler, speed=policy.speed)
    options = dict(word.split("=", 1) for word in words if "=" in word)
    held = b"x" * (int(options.get("hold", 0)) << 20)
    if "fail" in options and not Path(options["fail"]).exists():
        Path(options["fail"]).touch()
        print("this program fails once")
        return 7
    if "spawn" in options:
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        Path(options["spawn"]).write_text(str(child.pid))
    asked = [word for word in words if ":" in word]
    second = Path(options.get("second", ""))
    if rank and second.is_file():
        asked.append(second.read_text())
    for number, word in enumerate(asked, 1):
        name, _, nodes = word.partition(":")
        recorder.begin_step("train")
        facts = {"type": "compile", "region": number, "model": "Light", "nodes": int(nodes)}
        inputs = [{"path": "x", "shape": [4, int(nodes)], "dtype": "int64", "layout": ""}]
        recorder.emit({**facts, "kind": "region", "outcome": "compiled", "key": f"region {number}", "inputs": inputs})
        graph = {**facts, "kind": "forward", "key": key(name), "name": name, "inputs": inputs}
        try:
            entry, outcome = neffs.request(name, name, compile_s(int(nodes)))
        except Forbidden:
            recorder.emit({**graph, "outcome": Outcome.FAILED})
            print(f"refused {name}")
            return 1
        recorder.emit({**graph, "outcome": outcome or Outcome.SHARED, "neff": entry.persistent_key})
        time.sleep(float(options.get("rest", 0)))
    recorder.end("ok")
    if "log" in options:
        with Path(options["log"]).open("a") as log:
            log.write(f"{sys.argv[1]}\n")
    del held
    return 0


def toolchain() -> dict[str, str]:
    from importlib.metadata import version
    from platform import python_version

    found = {"python": python_version(), "shapeguard": __version__}
    found |= {name: version(name) for name in ("torch", "transformers")}
    if compiler := os.environ.get("SHAPEGUARD_SIM_COMPILER"):
        found["neuronx-cc"] = compiler
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
