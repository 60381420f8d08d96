"""What is written down of a graph after AOTAutograd, simulated or compiled for real: all but its key and outcome."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import fx

from shapeguard.neuron.sim.fingerprint import sizes_of
from shapeguard.neuron.sim.outline import exchange, outline
from shapeguard.neuron.sim.specs import dtype_name, layout_of


def graph_facts(graph: fx.GraphModule, text: str) -> dict[str, Any]:
    """Give the facts of a graph for its event; `text` is the program as the key has it."""
    collectives = num_collectives(graph)
    return {
        "inputs": [_row(node) for node in graph.graph.nodes if node.op == "placeholder"],
        "constants": [],
        "nodes": len(graph.graph.nodes),
        "operators": _operators(graph),
        "dtypes": _dtypes(graph),
        "collectives": collectives,
        "outline": outline(text),
        "exchange": exchange(text) if collectives else "",
    }


def num_collectives(graph: fx.GraphModule) -> int:
    """Count the collectives in a graph."""
    return sum("c10d" in str(node.target) for node in graph.graph.nodes)


def _operators(graph: fx.GraphModule) -> dict[str, int]:
    """Give how often each operator occurs, by its name without "aten::"."""
    targets = (node.target for node in graph.graph.nodes if isinstance(node.target, torch._ops.OpOverload))
    return dict(Counter(str(each).removeprefix("aten.").removesuffix(".default") for each in targets))


def _dtypes(graph: fx.GraphModule) -> list[str]:
    """Give the types of all tensors in a graph: autocast changes those inside, not those of the inputs."""
    values = (node.meta.get("val") for node in graph.graph.nodes)
    return sorted({dtype_name(value.dtype) for value in values if isinstance(value, torch.Tensor)})


def _row(node: fx.Node) -> dict[str, Any]:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return {"path": str(node.target), "shape": [], "dtype": type(value).__name__, "layout": ""}
    return {
        "path": str(node.target),
        "shape": sizes_of(value),
        "dtype": dtype_name(value.dtype),
        "layout": str(layout_of(value) or ""),
    }
