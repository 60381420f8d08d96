"""How long a run of 100,000 events takes to report, beside the bare reading of its lines as JSON.

Run it as `python benchmarks/report.py`; the ratio is of medians of the same run.
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


def median_s(work: Callable[[], object]) -> float:
    """Give the median of some rounds, in seconds."""
    took = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return statistics.median(took)


def main() -> int:
    """Print both medians and their ratio."""
    with tempfile.TemporaryDirectory() as scratch:
        path = write(Path(scratch))
        reading = median_s(lambda: [json.loads(line) for line in path.open()])
        judging = median_s(lambda: summarise(read_run(Path(scratch))))
    print(f"{NUM_EVENTS} events: JSON {reading:.2f} s, judged {judging:.2f} s, {judging / reading:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
