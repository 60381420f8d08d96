"""A simulated world: its size, the ranks of it that run, and what a rank's process is told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from shapeguard.core.errors import UsageError

_LARGEST = 65536
_PART = re.compile(r"([A-Za-z_]\w*)=(\d+)")
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun"})
_LAUNCHER_MODULES = frozenset({"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """So many ranks, of which some run, each by itself."""

    text: str
    """As the user wrote it: `tp=2,fsdp=2`, or `4`."""
    size: int
    ranks: tuple[int, ...]


def world(text: str, ranks: str) -> World:
    """Understand `--world tp=2,fsdp=2 --rank 0|0,3|all`."""
    size = prod(_sizes(text))
    if not 1 <= size <= _LARGEST:
        raise UsageError(f"--world {text}: {size} ranks; give from 1 to {_LARGEST}", hint="check the sizes")
    return World(text=text, size=size, ranks=_ranks(ranks, size))


def _sizes(text: str) -> list[int]:
    if text.isdigit():
        return [int(text)]
    found = [_PART.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise UsageError(f"--world {text}: no sizes", hint="write --world tp=2,fsdp=2, or the number of ranks")
    names = [part.group(1) for part in found if part]
    if len(set(names)) < len(names):
        raise UsageError(f"--world {text}: a name stands twice", hint="write each dimension once")
    return [int(part.group(2)) for part in found if part]


def _ranks(text: str, size: int) -> tuple[int, ...]:
    if text == "all":
        return tuple(range(size))
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() for word in words):
        raise UsageError(f"--rank {text}: no rank", hint="write a number, several with commas, or all")
    ranks = sorted({int(word) for word in words})
    if ranks[-1] >= size:
        raise UsageError(
            f"--rank {ranks[-1]}: the world has {size} rank{'s' * (size != 1)}", hint=f"give 0 to {size - 1}"
        )
    return tuple(ranks)


def environment(world: World, rank: int, base: Mapping[str, str]) -> dict[str, str]:
    """Give the environment of one rank: what a launcher on one machine would set, and that nobody else is there."""
    found = {name: value for name, value in base.items() if not name.startswith("TORCHELASTIC_")}
    local = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world.size, "LOCAL_WORLD_SIZE": world.size}
    found.update({name: str(value) for name, value in local.items()})
    found.update(
        GROUP_RANK="0", GROUP_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500", SHAPEGUARD_WORLD=world.text
    )
    return found


def refuse_launcher(argv: Sequence[str]) -> None:
    """Say that a launcher would start the ranks that a simulated world leaves out."""
    name = Path(argv[0]).name
    module = argv[argv.index("-m") + 1] if "-m" in argv[:-1] else ""
    if name in _LAUNCHERS or module in _LAUNCHER_MODULES:
        raise UsageError(
            f"--world runs a rank without a launcher, and the command is `{module or name}`",
            hint="give the script itself, or leave out --world to start all ranks",
        )
