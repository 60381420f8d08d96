"""How long a plan takes: ten million lengths in a file, and plans over many distinct lengths.

Run it as `python benchmarks/buckets.py`; it needs nothing but shapeguard, and a minute to write its file.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from shapeguard.buckets.fit import Limits, Work
from shapeguard.buckets.lengths import read_lengths
from shapeguard.buckets.plan import Planner

Result = TypeVar("Result")
ROWS = 10_000_000
LONGEST = 32_768
LIMIT_S = 5.0


def timed(what: str, call: Callable[[], Result]) -> tuple[Result, float]:
    """Run it, print the seconds on the clock and on the processor, and give the former."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    seconds = time.perf_counter() - wall
    print(f"{what:58} {seconds:6.2f} s, {time.process_time() - cpu:6.2f} s of processor")
    return result, seconds


def write(path: Path, rows: int) -> None:
    """Write lengths as they are in chats: most short, a long tail."""
    chance = Random(0)
    shapes = [str(min(LONGEST, max(1, int(chance.lognormvariate(6.5, 1.1))))) for _ in range(200_000)]
    with path.open("w") as stream:
        for _ in range(rows // 100_000):
            stream.write("\n".join(chance.choices(shapes, k=100_000)) + "\n")


def main(rows: int = ROWS) -> int:
    """Time reading and planning, by alignment and kind of work; exit 1 if a limit is missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lengths.txt"
        write(path, rows)
        lengths, reading = timed(f"read {rows:,} lengths", lambda: read_lengths(str(path)).counts)
    print(f"{len(lengths):,} distinct lengths")
    slowest = 0.0
    for align in (128, 16, 1):
        for kind, work in (("tokens", Work()), ("attention", Work(linear=4096, quadratic=1))):
            planner = Planner(lengths, limits=Limits(align=align), work=work)
            what = f"1 to 16 buckets, align {align}, {kind} ({planner.most:,} candidates)"
            slowest = max(slowest, timed(what, partial(_curve, planner))[1])
    print(f"limit {LIMIT_S} s: {reading + slowest:.2f} s for reading and the slowest plan")
    return int(reading + slowest > LIMIT_S)


def _curve(planner: Planner) -> int:
    return len(list(planner.curve(16)))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
