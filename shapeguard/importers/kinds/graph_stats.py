"""TorchNeuron's table of compiled graphs: `metric_table_graph_stats_rankR.csv` (April 2026; 2.14 unproven)."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from shapeguard.core.events import REGION_KINDS, Outcome
from shapeguard.importers.importer import Imported, Importer, Numbering

_RANK = re.compile(r"_rank(\d+)")
_NAME = re.compile(r"^(.*)_(\d+)_(" + "|".join(REGION_KINDS) + r")_(\d+)$")
_NEEDED = ("graph_id", "graph_name")


class GraphStats(Importer):
    """What `TORCH_NEURONX_ENABLED_METRIC_TABLES=graph_stats` leaves at the end of a process."""

    name = "graph-stats"
    what = "TorchNeuron's graph_stats table"

    def fits(self, path: Path) -> bool:
        """Tell it by its columns."""
        files = _files(path)
        if not files:
            return False
        with files[0].open(encoding="utf-8", errors="replace") as stream:
            return set(_NEEDED) <= {name.strip() for name in stream.readline(1 << 16).split(",")}

    def read(self, path: Path, *, root: str) -> list[Imported]:
        """Read each file as one process."""
        files = _files(path)
        return [_read(file, world_size=len(files)) for file in files]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".csv" else []
    return sorted(path.glob("metric_table_graph_stats*.csv"))


def _read(file: Path, *, world_size: int) -> Imported:
    rank = _RANK.search(file.name)
    numbering = Numbering()
    regions: dict[tuple[str, str], int] = {}
    known: set[str] = set()
    unread = 0
    with file.open(encoding="utf-8", errors="replace", newline="") as stream:
        for row in csv.DictReader(stream):
            try:
                _take(row, numbering, regions, known)
            except (KeyError, TypeError, ValueError):
                unread += 1
    number = int(rank[1]) if rank else 0
    return Imported(rank=number, world_size=world_size, events=numbering.events, num_unread=unread)


def _take(row: dict[str, str], numbering: Numbering, regions: dict[tuple[str, str], int], known: set[str]) -> None:
    key, name = row["graph_id"], row["graph_name"]
    parts = _NAME.match(name)
    model, number, kind = (parts[1], parts[2], parts[3]) if parts else (row.get("model_name") or "", name, "inference")
    phase = "eval" if kind == "inference" else "train"
    compile_us = float(row.get("torch_neuronx_compile_us") or 0)
    nodes = int(float(row.get("graph_node_count") or 0))
    has_collectives = row.get("has_collectives", "").strip().lower() in ("1", "true")
    region = regions.get((model, number))
    if region is None:
        region = regions[model, number] = len(regions) + 1
        shown = model if model != "model_default" else ""
        key_of_region = f"region {region}"
        numbering.compile(
            phase, kind="region", region=region, key=key_of_region, outcome=Outcome.COMPILED, model=shown, nodes=nodes
        )
    outcome = Outcome.SHARED if key in known else Outcome.COMPILED if compile_us > 0 else Outcome.DISK
    known.add(key)
    timed: dict[str, Any] = {"seconds": round(compile_us / 1e6, 6)} if outcome is Outcome.COMPILED else {}
    numbering.compile(
        phase,
        kind=kind,
        region=region,
        key=key,
        name=name,
        outcome=outcome,
        nodes=nodes,
        collectives=int(has_collectives),
        **timed,
    )
