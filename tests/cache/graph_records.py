"""Records to test with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shapeguard.cache.store import GraphCache
from shapeguard.core.graphs import GraphInput, GraphKey, GraphRecord, ModelKey, Neff

VERSIONS = {
    "torch": "2.13.0",
    "transformers": "5.24.0",
    "torch-neuronx": "2.13.3",
    "neuronx-cc": "2.21.1",
    "nki": "0.2",
    "python": "3.11.7",
}


def record(
    number: int = 0, *, model: str = "LlamaForCausalLM", shape: tuple[int, ...] = (8, 512), **changes: Any
) -> GraphRecord:
    """A record of a training graph; another number is another graph."""
    plain = GraphRecord(
        key=GraphKey(
            graph=f"{number:064x}",
            device="simulated",
            target="trn2",
            flags=("--model-type transformer", "--auto-cast=none"),
        ),
        model=ModelKey(name=model, config="0123456789ab"),
        kind="forward",
        name=f"model_default_{number}_forward_1",
        inputs=(
            GraphInput(path="input_ids", shape=shape, dtype="int64"),
            GraphInput(path="labels", shape=shape, dtype="int64"),
        ),
        constants=(("scale", "0.125"),),
        modes=(("autocast", "bfloat16"), ("grad", "True"), ("training", "True")),
        world_size=1,
        nodes=1200,
        operators={"mm": 40, "add.Tensor": 12},
        versions=VERSIONS,
        jobs=("train",),
        source="trace",
    )
    return replace(plain, **changes)


def neff(number: int = 0, size: int = 1000) -> Neff:
    """A NEFF's metadata."""
    return Neff(digest=f"{number:064x}", size_bytes=size)


def filled(folder: Path, *records: GraphRecord) -> Path:
    """A cache folder with these records."""
    with GraphCache(folder) as cache:
        cache.put_many(records)
    return folder


Shapeguard = Callable[..., Any]
"""The fixture `shapeguard`: runs the command line."""
