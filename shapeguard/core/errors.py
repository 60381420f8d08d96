"""The errors that shapeguard raises, and the exit codes.

ShapeguardError              exit 2: could not do the job
├── ConfigError              a configuration or an option that cannot be used
├── UsageError               input that cannot be used: a file, a run folder
├── LockError                a lock file that cannot be used
├── CacheError               the graph cache
│   └── RemoteError          a remote of it
└── DeviceError              exit 3: this machine cannot do it
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """What an exit code means, the same for every command."""

    CLEAN = 0
    FINDINGS = 1
    FAILED = 2
    UNABLE = 3


class ShapeguardError(Exception):
    """A mistake that the user can mend; `hint` is the next step, one line."""

    exit_code: ClassVar[Exit] = Exit.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class ConfigError(ShapeguardError):
    """A configuration or an option that cannot be used."""


class UsageError(ShapeguardError):
    """Input that cannot be used: a missing file, a folder that is no run."""


class LockError(ShapeguardError):
    """A lock file that cannot be used."""


class CacheError(ShapeguardError):
    """The graph cache cannot do what was asked."""


class RemoteError(CacheError):
    """A remote of the graph cache cannot do what was asked."""


class DeviceError(ShapeguardError):
    """This machine cannot do it: no torch, no Neuron device, a private name of torch that is gone."""

    exit_code = Exit.UNABLE
