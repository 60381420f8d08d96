"""How long `check` takes beside the trace: a lock of 5,000 graphs is read and compared with a run that has 100 others.

Run it as `python benchmarks/lock.py` in a checkout; it needs nothing but shapeguard. Exit code 1: a second was passed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "lock"))

from locked_runs import TOOLCHAIN, graph, write_run

from shapeguard.checks.job import Job
from shapeguard.checks.judge import Place, judge
from shapeguard.checks.run import read
from shapeguard.checks.settings import JobSettings
from shapeguard.lock.read import read as read_lock
from shapeguard.lock.write import text

GRAPHS, OTHERS = 5_000, 100
LIMIT_S = 1.0


def main() -> int:
    """Print the seconds and compare them with the limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = Job(name="train", settings=JobSettings(command=("train.py",)), root=folder)
        runs = []
        for shift in (0, 2 * GRAPHS):
            sizes = (n + shift * (n > GRAPHS - OTHERS) for n in range(1, GRAPHS + 1))
            events = [event for number, size in enumerate(sizes, 1) for event in graph(number, (size, 8))]
            runs.append(read(job, write_run(folder / f"run-{shift}", events, toolchain=TOOLCHAIN)))
        file = folder / "shapeguard.lock"
        file.write_text(text(runs[0].observed.locked(job.locked)))
        begin = time.perf_counter()
        lock = read_lock(file)
        is_read = time.perf_counter()
        verdict = judge(runs[1], lock, Place(lock=file), today=date(2026, 1, 1))
        spent = time.perf_counter() - begin
    assert verdict.difference is not None
    print(f"{GRAPHS:,} graphs, {len(verdict.difference.added)} new: read {is_read - begin:.2f} s, in all {spent:.2f} s")
    return int(spent > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
