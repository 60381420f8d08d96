"""Compares what two traces of one program wrote down, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LATER = frozenset({"outcome", "device"})
"""Lines that only a run on hardware has: their facts go into the lines they speak of."""
GRAPHS = frozenset({"region", "forward", "backward", "inference"})
NEVER_SIMULATED = frozenset({"seconds", "neuron", "neff"})


def lines(run: Path, *, without: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Give the lines of a run's one process, later outcomes put in; `without` leaves out parts of every line."""
    (file,) = run.glob("rank-0.pid-*.jsonl")
    rows = [json.loads(text) for text in file.read_text().splitlines()]
    later = {row["n"]: row for row in rows if row["type"] == "outcome"}
    left_out = NEVER_SIMULATED | set(without)
    found = []
    for row in rows:
        if row["type"] in LATER | {"start", "fallback"}:
            continue
        if row["type"] == "compile" and row["n"] in later:
            row |= {name: value for name, value in later[row["n"]].items() if name in ("outcome", "name")}
        if row["type"] == "problem" and row.get("code") in ("evidence", "strided-input"):
            continue
        if row.get("kind") in GRAPHS:
            # Says how sure the simulation is; what was compiled is sure.
            row.pop("certainty", None)
        found.append({name: value for name, value in row.items() if name not in left_out})
    return found


def differences(simulated: list[dict[str, Any]], real: list[dict[str, Any]]) -> list[str]:
    """Name what differs, with the parts that do."""
    found = []
    for place in range(max(len(simulated), len(real))):
        ours = simulated[place] if place < len(simulated) else {}
        theirs = real[place] if place < len(real) else {}
        if ours != theirs:
            parts = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
            shown = [f"{name}: {ours.get(name)!r} / {theirs.get(name)!r}" for name in parts]
            found.append(f"line {place} {ours.get('op') or ours.get('kind') or ours.get('type')}: " + "; ".join(shown))
    return found
