"""How long runs of 100,000 events take to report, beside the bare reading of their lines as JSON.

Run it as `python benchmarks/report.py`; the ratios are of medians of the same run. One run is of eager operators that
grow, the other of regions of a new length each, with a forward and a backward.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shapeguard.runs.stream import read_run
from shapeguard.runs.summary import summarise

NUM_EVENTS = 100_000
ROUNDS = 5


def write(folder: Path) -> Path:
    """Write a run whose every second line is a compile of a new size."""
    path = folder / "rank-0.pid-1.jsonl"
    with path.open("w") as file:
        for n in range(1, NUM_EVENTS // 2 + 1):
            place = {"step": n, "phase": "train", "phase_step": n}
            inputs = [{"path": "a", "shape": [1, n], "dtype": "float32", "layout": ""}]
            site = {"file": "train.py", "line": 9, "function": "main"}
            event = {"type": "compile", "n": n, "kind": "eager", "outcome": "compiled", "op": "cat", "key": str(n)}
            file.write(json.dumps({"type": "step", **place}) + "\n")
            file.write(json.dumps({**event, **place, "inputs": inputs, "site": site, "stack": [site]}) + "\n")
    return path


def write_regions(folder: Path) -> Path:
    """Write a run whose every step compiles a region with two graphs."""
    path = folder / "rank-0.pid-1.jsonl"
    site = {"file": "train.py", "line": 9, "function": "main"}
    modes = {"grad": True, "inference": False, "training": True, "autocast": ""}
    region = {"code": {**site, "line": 5}, "constants": [], "modes": modes}
    with path.open("w") as file:
        for n in range(1, NUM_EVENTS // 4 + 1):
            place = {"step": n, "phase": "train", "phase_step": n}
            names = ("input_ids", "attention_mask", "labels")
            inputs = [{"path": name, "shape": [4, n], "dtype": "int64", "layout": ""} for name in names]
            file.write(json.dumps({"type": "step", **place}) + "\n")
            for at, kind in enumerate(("forward", "backward", "region")):
                event = {
                    "type": "compile",
                    "n": 3 * n + at,
                    "kind": kind,
                    "outcome": "compiled",
                    "region": n,
                    "nodes": 90,
                }
                event |= {"key": f"{kind} {n}", "name": f"model_{n}_{kind}", "guard": f"size == {n - 1}"}
                event |= {"inputs": inputs, "site": site, "stack": [site], **(region if kind == "region" else {})}
                file.write(json.dumps(event) + "\n")
    return path


def median_s(work: Callable[[], object]) -> float:
    """Give the median of some rounds, in seconds."""
    took = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return statistics.median(took)


def main() -> int:
    """Print the medians and their ratios."""
    for name, make in (("eager operators", write), ("regions", write_regions)):
        with tempfile.TemporaryDirectory() as scratch:
            path = make(Path(scratch))
            reading = median_s(lambda path=path: [json.loads(line) for line in path.open()])
            judging = median_s(lambda folder=path.parent: summarise(read_run(folder)))
        ratio = judging / reading
        print(f"{NUM_EVENTS} events of {name}: JSON {reading:.2f} s, judged {judging:.2f} s, {ratio:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
