"""Where the child's errors become one line and an exit code, on one rank or on many."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from shapeguard.core.errors import ShapeguardError
from shapeguard.core.files import replace_file
from shapeguard.run.settings import FAILED, Infer, Train, read_words


def run(argv: Sequence[str]) -> int:
    """Do what the words say and give the exit code."""
    settings = read_words(argv)
    try:
        _work(settings)
    except ShapeguardError as error:
        return _refuse(error, settings.scratch)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return 130
    return 0


def _work(settings: Infer | Train) -> None:
    # Here, since they bring torch: a mistake in the words is told without it.
    if isinstance(settings, Infer):
        from shapeguard.run.infer import infer

        infer(settings)
    else:
        from shapeguard.run.train import train

        train(settings)


def _refuse(error: ShapeguardError, scratch: str) -> int:
    """Tell what is wrong. Under our own torchrun the parent tells it, without torchrun's account of the end."""
    rank = os.environ.get("RANK", "")
    if scratch and rank:
        if rank == "0":
            told = {"message": error.message, "hint": error.hint, "exit_code": int(error.exit_code)}
            replace_file(Path(scratch) / FAILED, json.dumps(told).encode())
        return 0
    # A foreign torchrun ends all ranks with the first that leaves: whoever that is must have spoken.
    where = f"rank {rank}: " if rank else ""
    sys.stderr.write(f"error: {where}{error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
    return int(error.exit_code)
