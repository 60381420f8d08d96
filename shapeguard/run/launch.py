"""How a runner is started: in this process's place, in a child, or in several by torchrun. Never imports torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from shapeguard.core.errors import DeviceError, UsageError
from shapeguard.run.settings import Infer, Train, words
from shapeguard.trace.probe import device_nodes, installed


def is_rank(environ: Mapping[str, str]) -> bool:
    """Whether this process is one that torchrun started."""
    return "RANK" in environ and "WORLD_SIZE" in environ


def is_traced(environ: Mapping[str, str]) -> bool:
    """Whether this process is inside `shapeguard trace`."""
    return bool(environ.get("SHAPEGUARD_RUN_DIR"))


def argv(settings: Infer | Train, environ: Mapping[str, str]) -> list[str]:
    """Give the command that does the work, through torchrun where it takes several processes."""
    module = ["-m", "shapeguard.run", *words(settings)]
    if settings.world_size == 1 or is_rank(environ):
        return [sys.executable, *module]
    number = str(settings.world_size)
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", number, *module]


def device(wanted: str, environ: Mapping[str, str]) -> str:
    """Settle which device it is: `sim`, `neuron` or `cpu`; what this machine cannot do is exit 3."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise DeviceError("torch and transformers are not installed here", hint="pip install 'shapeguard[trace]'")
    if wanted == "cpu":
        return wanted
    if is_traced(environ):
        return "sim"
    found = installed(sys.executable)
    has_device = bool(found and found.neuron) and device_nodes()
    if wanted == "neuron" and not has_device:
        raise DeviceError("there is no Neuron device here", hint="use --device sim, which counts graphs without one")
    chosen = ("neuron" if has_device else "sim") if wanted == "auto" else wanted
    if chosen == "sim" and is_rank(environ):
        raise UsageError(
            "ranks of torchrun cannot simulate each on their own",
            hint="leave torchrun out, it is started for you, or write `shapeguard trace -- torchrun …`",
        )
    return chosen


def check_world(settings: Infer | Train, environ: Mapping[str, str]) -> None:
    """Refuse ranks whose number is not tp × fsdp."""
    if not is_rank(environ):
        return
    number = environ["WORLD_SIZE"]
    if number != str(settings.world_size):
        raise UsageError(
            f"torchrun started {number} processes, but --tp {settings.tp} × --fsdp {settings.fsdp} needs "
            f"{settings.world_size}",
            hint=f"start it with --nproc-per-node {settings.world_size}, or change --tp and --fsdp",
        )


def check_model(name: str) -> None:
    """Refuse a folder that holds no model, before anything slow is started; a name may be one of the hub."""
    path = Path(name)
    hint = "give a folder with a config.json, or a name on the Hugging Face hub"
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"the folder {name} holds no model: there is no config.json", hint=hint)
    elif path.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1 or not name.strip("/"):
        raise UsageError(f"there is no model {name}", hint=hint)


def replace_this_process(command: list[str]) -> None:
    """Become the runner: its process id, its streams and its signals stay those of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)
