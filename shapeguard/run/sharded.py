"""Checkpoints of a training on several ranks: each rank writes its own shards of the optimizer's state.

The weights are saved whole, as a model's always are; a training that goes on loads the model from there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import checkpoint

from shapeguard.core.files import replace_file

_OPTIMIZER = "optimizer"
_SCHEDULER = "scheduler.json"


def save(folder: Path, model: Any, optimizer: Any, scheduler: Any) -> None:
    """Write the state of the optimizer and of the schedule; to be called on all ranks."""
    checkpoint.save(_state(model, optimizer), checkpoint_id=folder / _OPTIMIZER)
    if dist.get_rank() == 0:
        replace_file(folder / _SCHEDULER, json.dumps(scheduler.state_dict()).encode())


def load(folder: Path, model: Any, optimizer: Any, scheduler: Any) -> None:
    """Read what `save` wrote, on as many ranks as there were."""
    names = checkpoint.FileSystemReader(folder / _OPTIMIZER).read_metadata().state_dict_metadata
    # Steps are counted on the host, unless the optimizer is one fused operator.
    counts_on_device = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        count = torch.zeros((), device=parameter.device if counts_on_device else "cpu")
        for kind in _kinds(names, name):
            has_shape = len(getattr(names[f"{name}|{kind}"], "size", ())) > 0
            found[f"{name}|{kind}"] = torch.zeros_like(parameter.detach()) if has_shape else count.clone()
    checkpoint.load(found, checkpoint_id=folder / _OPTIMIZER)
    for name, parameter in model.named_parameters():
        for kind in _kinds(names, name):
            optimizer.state[parameter][kind] = found[f"{name}|{kind}"]
    scheduler.load_state_dict(json.loads((folder / _SCHEDULER).read_text(encoding="utf-8")))


def _state(model: Any, optimizer: Any) -> dict[str, Tensor]:
    return {
        f"{name}|{kind}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def _kinds(names: Any, parameter: str) -> list[str]:
    return sorted(name.split("|")[1] for name in names if name.split("|")[0] == parameter)
