"""Child processes that judge files, so that several run at once and none can take the run down.

The children are forked and talk JSON lines over pipes. A parser that overflows the stack kills a child; then the file
at fault becomes a problem, and the rest goes to a new child. Where there is no `fork`, files are judged in this
process.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from shapeguard.core.finding import Problem
from shapeguard.lint.check import check_file
from shapeguard.lint.codec import from_json, to_json
from shapeguard.lint.task import Task, Verdict

TIME_LIMIT_S = 120.0
"""Longest time for one file; a parser that hangs must not hold up a commit for ever."""
_BATCH = 8
_READ_SIZE = 1 << 20

Item = tuple[Path, Task]


@dataclass(slots=True, kw_only=True)
class _Child:
    pid: int
    orders: int
    answers: int
    pending: deque[int] = field(default_factory=deque)
    buffer: bytes = b""
    since: float = 0.0


def check_files(items: Sequence[Item], *, jobs: int) -> Iterator[tuple[int, Verdict]]:
    """Judge the files and give each verdict with the file's index, in the order in which they are ready."""
    if not items:
        return
    if not hasattr(os, "fork"):
        yield from ((index, judge(file, task)) for index, (file, task) in enumerate(items))
        return
    pool = _Pool(items, jobs=min(jobs, len(items)))
    try:
        yield from pool.run()
    finally:
        pool.close()


def load_parser() -> None:
    """Import what a tree needs before children start, which then share it: a quarter of a second each."""
    import_module("shapeguard.lint.flow.check")


def judge(file: Path, task: Task) -> Verdict:
    """Read a file and judge it."""
    try:
        data = file.read_bytes()
    except OSError as error:
        message = f"could not be read: {error.strerror or error}"
        return Verdict(problems=(Problem(path=task.path, message=message),))
    return check_file(data, task)


class _Pool:
    """The parent's side: hands out indexes and takes verdicts."""

    def __init__(self, items: Sequence[Item], *, jobs: int) -> None:
        self.items = items
        self.jobs = jobs
        self.queue = deque(range(len(items)))
        self.children: list[_Child] = []
        self.selector = selectors.DefaultSelector()

    def run(self) -> Iterator[tuple[int, Verdict]]:
        for _ in range(self.jobs):
            self._start()
        while self.children:
            ready = self.selector.select(timeout=1.0)
            for key, _ in ready:
                yield from self._take(key.data)
            yield from self._stop_slow()

    def close(self) -> None:
        for child in list(self.children):
            self._end(child, kill=True)
        self.selector.close()

    def _start(self) -> None:
        if not self.queue:
            return
        orders_read, orders_write = os.pipe()
        answers_read, answers_write = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            # What is still in a buffer would be written by the child too.
            if stream is not None:
                stream.flush()
        pid = os.fork()
        if pid == 0:
            others = [fd for child in self.children for fd in (child.orders, child.answers)]
            for fd in (orders_write, answers_read, *others):
                os.close(fd)
            _serve(self.items, orders_read, answers_write)
        os.close(orders_read)
        os.close(answers_write)
        child = _Child(pid=pid, orders=orders_write, answers=answers_read)
        self.children.append(child)
        self.selector.register(answers_read, selectors.EVENT_READ, child)
        self._order(child)

    def _order(self, child: _Child) -> None:
        """Hand out a few files; the last ones one by one, so that no child is left with all of them."""
        size = max(1, min(_BATCH, len(self.queue) // (4 * self.jobs)))
        batch = [self.queue.popleft() for _ in range(min(size, len(self.queue)))]
        if not batch:
            self._end(child, kill=False)
            return
        child.pending.extend(batch)
        child.since = time.monotonic()
        # A child may have died between two files; reading its answers tells.
        with suppress(BrokenPipeError):
            os.write(child.orders, (json.dumps(batch) + "\n").encode())

    def _take(self, child: _Child) -> Iterator[tuple[int, Verdict]]:
        data = os.read(child.answers, _READ_SIZE)
        if not data:
            yield from self._died(child, "")
            return
        *lines, child.buffer = (child.buffer + data).split(b"\n")
        for line in lines:
            index = child.pending.popleft()
            child.since = time.monotonic()
            yield index, from_json(json.loads(line), self.items[index][1].path)
        if not child.pending:
            self._order(child)

    def _died(self, child: _Child, reason: str) -> Iterator[tuple[int, Verdict]]:
        status = self._end(child, kill=bool(reason))
        if child.pending:
            index = child.pending.popleft()
            path = self.items[index][1].path
            message = reason or f"made the parser crash ({_how(status)}), so it was not checked"
            yield index, Verdict(problems=(Problem(path=path, message=message),))
            self.queue.extendleft(reversed(child.pending))
        self._start()

    def _stop_slow(self) -> Iterator[tuple[int, Verdict]]:
        now = time.monotonic()
        for child in list(self.children):
            if child.pending and now - child.since > TIME_LIMIT_S:
                yield from self._died(child, f"took longer than {TIME_LIMIT_S:.0f} s, so it was not checked")

    def _end(self, child: _Child, *, kill: bool) -> int:
        self.children.remove(child)
        self.selector.unregister(child.answers)
        if kill:
            os.kill(child.pid, signal.SIGKILL)
        os.close(child.orders)
        os.close(child.answers)
        return os.waitpid(child.pid, 0)[1]


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def _serve(items: Sequence[Item], orders: int, answers: int) -> None:
    """The child: judge what is asked for until the parent closes the pipe; never returns."""
    code = 1
    try:
        # The parent ends its children itself; a second traceback on Ctrl-C helps nobody.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Trees are large and free of cycles: the collector would walk them again and again.
        gc.set_threshold(500_000, 50, 100)
        with os.fdopen(orders, "rb") as requests, os.fdopen(answers, "wb") as replies:
            for request in requests:
                for index in json.loads(request):
                    replies.write(_answer(*items[index]))
                    replies.flush()
        code = 0
    except BaseException:
        # Nobody listens any more; what was pending becomes a problem in the parent.
        pass
    finally:
        os._exit(code)


def _answer(file: Path, task: Task) -> bytes:
    row: dict[str, Any] = to_json(judge(file, task))
    return json.dumps(row, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
