"""`--locked` of the runners: no graph may compile that the project's lock does not name."""

from __future__ import annotations

import os
from pathlib import Path

from shapeguard.config.load import find
from shapeguard.lock.values import NAME, Lock


def lock_file() -> Path:
    """Give the project's lock: it lies beside the nearest configuration, or here."""
    found = find(Path())
    folder = found.parent if found is not None else Path()
    return Path(os.path.relpath(folder / NAME))


def read_lock() -> Lock:
    """Read the lock before anything slow is started; `LockError` where there is none, or where others wrote it."""
    from shapeguard.checks.project import demand_toolchain, here
    from shapeguard.lock.read import read

    lock = read(lock_file())
    demand_toolchain(lock, here(), lock_file())
    return lock


def unlocked(folder: Path, lock: Lock) -> list[str]:
    """Say which graphs a run compiled that the lock does not name, whichever job needs them."""
    from shapeguard.lock.observe import observe
    from shapeguard.runs.stream import read_run

    graphs = observe(read_run(folder), "run").graphs
    return sorted(str(graph) for name, graph in graphs.items() if name not in lock.graphs)
