"""The processes below one: which they are, what memory they hold, and how to end all of them. Linux's /proc only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from shapeguard.trace.parent import DIES_WITH

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SET_SUBREAPER = 36
_ROUNDS = 20


def below(pid: int) -> list[int]:
    """Give the process and all below it, those that were handed to it by the death of their parents too."""
    found, left = [], [pid]
    while left:
        each = left.pop()
        found.append(each)
        left += _children(each)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for task in (_PROC / str(pid) / "task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def resident_bytes(pids: Iterable[int]) -> tuple[int, int]:
    """Give the memory that processes hold now, and the most that each ever held, added up."""
    now = most = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            held, peak = _memory((_PROC / str(pid) / "status").read_text())
            now, most = now + held, most + max(held, peak)
    return now, most


def _memory(status: str) -> tuple[int, int]:
    held = peak = 0
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            held = int(line.split()[1]) * 1024
        elif line.startswith("VmHWM:"):
            peak = int(line.split()[1]) * 1024
    return held, peak


def available_bytes() -> int:
    """Give the memory that this machine, or the group that this process is in, can still give; 0: unknown."""
    found = []
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit.isdigit():
            found.append(max(0, int(limit) - int(Path("/sys/fs/cgroup/memory.current").read_text())))
    return min(found, default=0)


def end_all(pid: int, *, spare: bool = False) -> None:
    """Kill a process and all below it, in whatever session they are; `spare` leaves the process itself."""
    if not spare:
        # It must neither start more nor tell of the deaths below it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Where there is no /proc this is all that can be reached.
            os.killpg(pid, signal.SIGKILL)
    for _ in range(_ROUNDS):
        # One that forks while it is looked for is met in the next round, by the parent that adopted it.
        doomed = [each for each in below(pid) if each != pid and not is_dead(each)]
        if not doomed:
            break
        for each in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
    if not spare:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def carries(pid: int, worker: int) -> bool:
    """Whether a process's environment says that it belongs to the worker."""
    try:
        return f"{DIES_WITH}={worker}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def is_dead(pid: int) -> bool:
    """Whether a process is gone, or waits to be buried."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (OSError, IndexError):
        return True


def adopt_orphans() -> None:
    """Have processes below this one, whose parents die, handed to it and not to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)
