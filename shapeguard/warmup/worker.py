"""A worker: a process that runs one recipe after the other for the process that started it, and ends with it.

It reads a line of JSON for each try from one pipe and answers on another. When the first pipe closes, whatever the
reason, everything below it is killed: a warm-up that is killed leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec

from shapeguard.cache import codec
from shapeguard.core.errors import ShapeguardError
from shapeguard.trace.parent import DIES_WITH
from shapeguard.trace.program import program
from shapeguard.trace.relay import FORWARDED
from shapeguard.trace.settings import Settings
from shapeguard.trace.supervise import trace
from shapeguard.trace.world import world
from shapeguard.warmup.harvest import harvest
from shapeguard.warmup.processes import adopt_orphans, end_all
from shapeguard.warmup.values import Result, Work

LOG = "output.log"
_LAST_LINES = 25


def main(orders: int, answers: int) -> None:
    """Run what comes in on one pipe until it closes."""
    for each in (orders, answers):
        os.set_inheritable(each, False)
    adopt_orphans()
    works: queue.SimpleQueue[Work] = queue.SimpleQueue()
    # The thread inherits the mask: a signal that it took would never reach the one that waits for the program.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    threading.Thread(target=_listen, args=(orders, works), daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    while True:
        answer = msgspec.json.encode(run(works.get()))
        with contextlib.suppress(BrokenPipeError):
            _write(answers, answer + b"\n")


def _listen(orders: int, works: queue.SimpleQueue[Work]) -> None:
    with os.fdopen(orders, "rb") as stream:
        for line in stream:
            works.put(msgspec.json.decode(line, type=Work))
    end_all(os.getpid(), spare=True)
    os._exit(0)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def run(work: Work) -> Result:
    """Run one try of a recipe."""
    begin = time.monotonic()
    os.chdir(work.root)
    os.environ.clear()
    os.environ.update({**work.env, DIES_WITH: str(os.getpid())})
    folder = Path(work.folder)
    log = folder.with_name(f"{folder.name}.log")
    _print_to(log)
    _name_until(work, folder.with_name(f"{folder.name}.until"))
    try:
        settings = msgspec.convert(dict(work.settings), Settings)
        sizes = world(work.world, "all") if work.world else None
        traced = trace(program(work.words), settings, run_dir=folder, world=sizes, say=_say)
        end_all(os.getpid(), spare=True)
        return finished(work, traced.exit_code, wall_s=time.monotonic() - begin, log=log)
    except ShapeguardError as error:
        return Result(id=work.id, why=error.message, hint=error.hint, log=_tail(log))


def finished(work: Work, exit_code: int, *, wall_s: float, log: Path | None = None) -> Result:
    """Give the result of a run that has come to its end."""
    found = harvest(Path(work.folder), Path(work.neff_dir), job=work.job)
    return Result(
        id=work.id,
        exit_code=exit_code,
        wall_s=round(wall_s, 3),
        log=_tail(log) if exit_code and log else "",
        records=tuple(codec.encode(record) for record in found.records),
        seen=found.seen,
        misses=found.misses,
        toolchain=found.toolchain,
    )


def _name_until(work: Work, file: Path) -> None:
    """Tell the traced program after which graphs it may end; a variable would be too short for their keys."""
    if work.until:
        file.write_text("\n".join(work.until), encoding="utf-8")
        os.environ["SHAPEGUARD_UNTIL"] = str(file)


def _print_to(log: Path) -> None:
    """Let this process and what it starts print into a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _tail(log: Path) -> str:
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:])
    except OSError:
        return ""


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
