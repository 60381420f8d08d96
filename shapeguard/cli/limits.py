"""`trace --fail-on`: what of a run is over the limit that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapeguard.lock.values import Lock
    from shapeguard.runs.summary import Summary

LIMITS = ("new", "after-warmup", "any")
_LOCK = "shapeguard.lock"


def find_lock(limit: str | None) -> Lock | None:
    """Read the nearest lock upward, where the limit compares with one."""
    if limit != "new":
        return None
    from shapeguard.checks.project import demand_toolchain, here
    from shapeguard.lock.read import read

    folder = Path.cwd().resolve()
    path = next((folder / _LOCK for folder in (folder, *folder.parents) if (folder / _LOCK).is_file()), None)
    if path is None:
        return None
    lock = read(path)
    demand_toolchain(lock, here(), path)
    return lock


def passed(limit: str | None, summary: Summary, lock: Lock | None) -> str:
    """Say what passes the limit, for the last line of the report; empty where nothing does."""
    if limit is None:
        return ""
    if summary.divergence is not None:
        return f"ranks diverge at step {summary.divergence.step}"
    if lock is not None:
        new = [graph for graph in summary.graphs if (graph.kind, graph.key) not in lock.graphs]
        return f"{_graphs(len(new))} not in {_LOCK}" if new else ""
    num = summary.totals.regions if limit == "any" else summary.totals.late_regions
    if not num:
        return ""
    return f"{num} region{'s' * (num != 1)} compiled" + ("" if limit == "any" else " after warm-up")


def _graphs(num: int) -> str:
    return f"{num} graph{'s' * (num != 1)}"
