"""The line on a terminal while a program is traced: step, graphs, compiles after warm-up."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

EVERY_S = 0.5
_WARMUP, _PHASE_STEP = re.compile(rb'"warmup_steps":(\d+)'), re.compile(rb'"phase_step":(\d+)')
_REGION, _EAGER, _STEP = b'"kind":"region"', b'"kind":"eager"', b'"type":"step"'


class Follower:
    """Counts what is added to the event files of a run; reads each byte once and parses nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.steps = 0
        self.regions = 0
        self.late = 0
        self.eager = 0
        self._warmup = 2

    def look(self) -> str:
        """Read what is new and give the line."""
        for path in sorted(self._folder.glob("rank-*.jsonl")):
            with path.open("rb") as stream:
                stream.seek(self._read.get(path, 0))
                new = stream.read()
            # A line that is only half written is read again next time.
            new = new[: new.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(new)
            self.steps += new.count(_STEP)
            self._count_regions(new)
            self.eager += new.count(_EAGER)
        return (
            f"shapeguard: step {self.steps}, {self.regions} regions ({self.late} after warm-up), "
            f"{self.eager} eager signatures"
        )

    def _count_regions(self, new: bytes) -> None:
        if found := _WARMUP.search(new):
            self._warmup = int(found[1])
        if _REGION in new:
            for line in new.splitlines():
                if _REGION in line:
                    self.regions += 1
                    found = _PHASE_STEP.search(line)
                    self.late += found is not None and int(found[1]) > self._warmup


@contextmanager
def followed(folder: Path, write: Callable[[str], object] | None) -> Iterator[None]:
    """Keep a line up to date while the program runs; `write` is None where no person looks on."""
    if write is None:
        yield
        return
    ended = threading.Event()
    follower = Follower(folder)

    def show() -> None:
        before = ""
        while not ended.wait(EVERY_S):
            try:
                line = follower.look()
            except OSError:
                return
            if line != before:
                write(f"\r\x1b[2K{line}")
                before = line

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=2)
        write("\r\x1b[2K")
