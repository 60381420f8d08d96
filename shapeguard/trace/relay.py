"""Start a program, hand it every signal that this process gets, and wait for its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from shapeguard.core.errors import UsageError

FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT})
_KERNEL = 0x80
"""`si_code` of a signal that the terminal sent: to the whole group, the program has it already."""
_RESTORED = tuple(getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name))
"""Python ignores these; the program must start with what a shell would give it."""


def run(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end with this process's standard streams; give its exit code, 128+n after signal n."""
    with _blocked() as before:
        try:
            pid = os.posix_spawnp(argv[0], list(argv), dict(environment), setsigmask=before, setsigdef=_RESTORED)
        except OSError as error:
            raise UsageError(
                f"cannot start {argv[0]}: {error.strerror}", hint="check the command after `--`"
            ) from error
        return _follow(pid)


@contextmanager
def _blocked() -> Iterator[set[int]]:
    """Hold signals back until they are waited for; what comes after the program's end is acted on as usual."""
    # A parent that ignores SIGCHLD hands that down, and then no child can be waited for.
    inherited = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    try:
        yield {int(number) for number in before}
    finally:
        _drop_pending()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, inherited)


def _drop_pending() -> None:
    """Forget signals that reached the program at its end: they have been answered by its exit code."""
    while pending := signal.sigpending() & (FORWARDED | {signal.SIGCHLD}):
        signal.sigwait(pending)


def _follow(pid: int) -> int:
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        number, from_terminal = _next_signal()
        if number in FORWARDED and not from_terminal:
            _send(pid, number)


def _next_signal() -> tuple[int, bool]:
    waited = FORWARDED | {signal.SIGCHLD}
    if hasattr(signal, "sigwaitinfo"):
        found = signal.sigwaitinfo(waited)
        return found.si_signo, found.si_code == _KERNEL
    # macOS tells no sender: at a terminal it is the terminal for the keys that send one.
    number = signal.sigwait(waited)
    return number, number in FROM_TERMINAL and sys.stdin is not None and sys.stdin.isatty()


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has just ended, SIGCHLD is next
