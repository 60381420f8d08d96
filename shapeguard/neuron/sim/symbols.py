"""Sizes that Dynamo left open: Neuron compiles none of them, so the region is refused by their names (facts 2)."""

from __future__ import annotations

from types import FrameType

import torch
from torch import fx

from shapeguard.neuron.sim.regions import Scope, inputs_of, source_of

_SHOWN = 3


def symbolic_sizes(graph: fx.GraphModule, frame: FrameType | None) -> list[str]:
    """Name what each symbol of a region stands for: "dim 0 of x", or the input that is a number itself."""
    scope = Scope(frame)
    found: dict[str, str] = {}
    for row in inputs_of(graph, scope):
        for dim, size in enumerate(row["shape"]):
            if isinstance(size, str):
                found.setdefault(size, f"dim {dim} of {row['path']}")
    for node in graph.graph.nodes:
        value = node.meta.get("example_value")
        if node.op == "placeholder" and isinstance(value, torch.SymInt | torch.SymFloat):
            # That of a tensor's size is named above already.
            found.setdefault(str(value), scope.readable(source_of(node)) or str(node.target))
    return list(found.values())


def refusal(sizes: list[str]) -> str:
    """Say what is dynamic, and the way out."""
    shown = "; ".join(sizes[:_SHOWN]) + ("; ..." if len(sizes) > _SHOWN else "")
    return (
        f"Dynamic shapes detected: {len(sizes)} dynamic input(s) ({shown}). Neuron compiles static shapes only: "
        "pass dynamic=False or leave it out, drop mark_dynamic, and pad to fixed lengths"
    )
