"""How near a warm-up comes to its ideal time: what its simulated compiles take, divided by the workers.

    python benchmarks/warmup.py [--recipes 200] [--workers 4] [--executor local|ray] [--kill]

The recipes are small programs that start without torch; their compiles take `--seconds` each, as a sleep. `--kill`
kills one worker in the middle. Exit code 1 where it takes more than 15 % longer than ideal (not with `--kill` or Ray),
where a recipe is missing, or where one ran twice that had finished.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests" / "warmup"))

from warmup_light import Light, environment, journal, parents, project  # noqa: E402

from shapeguard.core.cost import compile_s  # noqa: E402

NODES = 160
LIMIT = 1.15


def killed(executor: str, parent: int) -> bool:
    """Kill one process that works for the executor; whether there was one."""
    mark = "ray::attempt" if executor == "ray" else "shapeguard.warmup.worker"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            is_one = mark in path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if is_one and parent in parents(int(path.parent.name)):
            os.kill(int(path.parent.name), signal.SIGKILL)
            return True
    return False


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipes", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.5)
    parser.add_argument("--executor", default="local")
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        log = Path(name, "ends")
        jobs = {
            f"job{number}": Light(graphs={f"g{number}": NODES}, words=(f"log={log}",))
            for number in range(options.recipes)
        }
        project(folder, jobs)
        speed = compile_s(NODES) / options.seconds
        words = ["-j", str(options.workers), "--sim-speed", str(speed), "--executor", options.executor]
        command = [sys.executable, "-m", "shapeguard", "warmup", "--neuron-cores", str(options.workers), *words]
        ideal_s = options.recipes * options.seconds / options.workers
        begin = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True)
        num_killed = 0
        while options.kill and not num_killed and process.poll() is None:
            time.sleep(0.2)
            if sum(row.get("type") == "finished" for row in journal(folder)) >= options.recipes // 3:
                num_killed = int(killed(options.executor, process.pid))
        out, _ = process.communicate()
        took_s = time.monotonic() - begin
        ended = Counter(row["recipe"] for row in journal(folder) if row.get("type") == "finished")
    print(out.strip())
    ratio = took_s / ideal_s
    print(f"{took_s:.1f} s for {options.recipes} recipes, ideal {ideal_s:.1f} s: {ratio:.3f} times, limit {LIMIT}")
    print(f"finished {len(ended)}, more than once {sum(each > 1 for each in ended.values())}, killed {num_killed}")
    is_whole = process.returncode == 0 and len(ended) == options.recipes and max(ended.values()) == 1
    is_fast = ratio <= LIMIT or options.kill or options.executor != "local"
    return int(not (is_whole and is_fast))


if __name__ == "__main__":
    sys.exit(main())
