"""What can be wrong with a training before anything slow is started. Never imports torch."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from shapeguard.core.errors import UsageError
from shapeguard.run.rows import classes_of
from shapeguard.run.settings import Train

_LAST = ("last", "true", "True")
"""What asks for the newest checkpoint; scripts of transformers write True."""


def check(settings: Train) -> None:
    """Refuse settings that cannot be trained with."""
    if settings.task == "classify":
        if settings.packing:
            raise UsageError("--packing joins rows, and a class belongs to one row", hint="leave out --packing")
        classes_of(settings)
    if settings.world_size > 1 and settings.device == "cpu":
        raise UsageError(
            "the Trainer shards no model on the plain CPU", hint="use --device sim, or leave out --tp and --fsdp"
        )
    _check_output(settings.output_dir)
    if settings.world_size > 1 and settings.resume_from_checkpoint:
        raise UsageError(
            "the Trainer cannot resume a model that is sharded while it is loaded",
            hint="train on from the saved model: give its folder as --model",
        )
    checkpoint(settings)


def _check_output(folder: str) -> None:
    """Refuse a folder that cannot be written to before the training, not after its first hours."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}", hint="give another --output-dir") from error


def checkpoint(settings: Train) -> str | None:
    """Give the checkpoint to go on from: the newest whole one where "last" is asked for."""
    wanted = settings.resume_from_checkpoint
    if not wanted:
        return None
    if wanted not in _LAST:
        if not (Path(wanted) / "trainer_state.json").is_file():
            raise UsageError(f"{wanted} is no whole checkpoint: it has no trainer_state.json", hint="or say: last")
        return wanted
    # The state is written last: a checkpoint without it was cut off when the training was killed.
    folders = [path.parent for path in Path(settings.output_dir).glob("checkpoint-*/trainer_state.json")]
    numbered = [(int(path.name[11:]), path) for path in folders if re.fullmatch(r"checkpoint-\d+", path.name)]
    if not numbered:
        raise UsageError(f"{settings.output_dir} has no whole checkpoint", hint="train with --save-steps first")
    return str(max(numbered)[1])
