"""Read a run folder: event files to values, line by line, so that a long run does not fill the memory."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shapeguard.core.errors import UsageError
from shapeguard.runs.lines import Reader
from shapeguard.runs.values import Run

STARTED = "run.json"
"""What the supervisor writes when it makes the folder."""
SUMMARY = "summary.json"


def read_run(folder: Path) -> Run:
    """Read the event files of a run folder; `UsageError` where it is none."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no run folder", hint="give the folder that `shapeguard trace` named")
    files = sorted(folder.glob("rank-*.jsonl"), key=_rank_and_pid)
    started = _started(folder / STARTED)
    if not files and not started:
        raise UsageError(f"{folder} holds no run", hint="give the folder that `shapeguard trace` named")
    reader = Reader()
    processes = []
    with without_collector():
        for path in files:
            with path.open("rb") as stream:
                processes.append(reader.process(stream, rank=_rank_and_pid(path)[0]))
    return Run(processes=tuple(p for p in processes if p.started or p.compiles), started=started)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the collector from looking again and again at what a long run holds: there is no garbage in it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _rank_and_pid(path: Path) -> tuple[int, int, str]:
    """Order a rank's processes by pid: that is the order they started in."""
    rank, _, pid = path.stem.removeprefix("rank-").partition(".pid-")
    return int(rank) if rank.isdigit() else 0, int(pid) if pid.isdigit() else 0, path.name


def _started(path: Path) -> Mapping[str, object]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
