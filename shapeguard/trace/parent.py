"""A traced process that a warm-up started ends with what started it, even where that is killed outright."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Mapping

DIES_WITH = "SHAPEGUARD_DIES_WITH"
"""Process id of the worker that started the program."""
_SET_DEATH_SIGNAL = 1


def end_with_parent(environ: Mapping[str, str]) -> None:
    """Have the kernel kill this process when its parent ends: where that is the worker, or a launcher below it.

    Not for other children of the program: the kernel means the thread that started them, which may end earlier.
    """
    worker, parent = environ.get(DIES_WITH, ""), os.getppid()
    if worker and (worker == str(parent) or "TORCHELASTIC_RUN_ID" in environ):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
