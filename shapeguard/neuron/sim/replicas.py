"""How a process group is written into a key: by the shape of its ranks, which is the same text on every rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch


def replicas(ranks: Sequence[int], world: int) -> str:
    """Name all groups of one mesh dimension at once: they are translations of each other.

    Neuron writes the rank lists of all of them into the graph, so a graph is the same on each of those ranks.
    """
    first = ranks[0] if ranks else 0
    steps = {later - earlier for earlier, later in pairwise(ranks)}
    if len(steps) > 1:
        return f"groups of {[rank - first for rank in ranks]} in {world}"
    return f"groups of {len(ranks)} with stride {steps.pop()} in {world}" if steps else f"groups of {len(ranks)}"


def replicas_of(value: Any) -> str:
    """Name a group by its name or by itself; empty for anything else."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return ""
    from torch.distributed import distributed_c10d

    group = value
    try:
        if isinstance(value, str):
            group = distributed_c10d._resolve_process_group(value)  # type: ignore[arg-type]
        elif isinstance(value, torch.ScriptObject):
            group = torch.distributed.ProcessGroup.unbox(value)
        if not isinstance(group, torch.distributed.ProcessGroup):
            return ""
        ranks = distributed_c10d.get_process_group_ranks(group)
    except (RuntimeError, ValueError, KeyError, TypeError):
        return ""
    return replicas(ranks, torch.distributed.get_world_size())
