"""Lines on standard error while recipes run: what came to its end, how long it took, how much is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from shapeguard.warmup.execute import Item, Listener
from shapeguard.warmup.values import LOST, MEMORY, Result

Write = Callable[[str], None]


class Progress(Listener):
    """One line a recipe that ended: `[3/12] train 8×512 … 37 s (12 min left)`."""

    def __init__(self, items: Sequence[Item], slots: int, write: Write) -> None:
        self._total = len(items)
        self._expected = {item.name: item.expected_s for item in items}
        self._slots = slots
        self._write = write
        self._began: dict[str, float] = {}
        self._done: dict[str, float] = {}

    def began(self, item: Item, number: int) -> None:
        """Note when."""
        self._began[item.name] = time.monotonic()
        if number > 1:
            self._write(f"{item.label}: try {number}")

    def ended(self, item: Item, result: Result, why: str) -> None:
        """Write the line."""
        took = time.monotonic() - self._began.get(item.name, time.monotonic())
        if why in (LOST, MEMORY):
            said = "its worker was killed" if why == LOST else "memory ran short"
            self._write(f"{item.label}: {said}, it is tried again")
            return
        self._done[item.name] = took
        left = self._left_s()
        rest = f" ({span(left)} left)" if left is not None and left >= 1 else ""
        self._write(f"[{len(self._done)}/{self._total}] {item.label} … {span(took)}{rest}{f': {why}' if why else ''}")

    def _left_s(self) -> float | None:
        """Give the time for the rest: what its compiles are expected to take, and beside that as long as the others."""
        if not self._done:
            return None
        beside = [took - (self._expected.get(name) or 0.0) for name, took in self._done.items()]
        start = max(0.0, sum(beside) / len(beside))
        now, left = time.monotonic(), []
        for name, expected in self._expected.items():
            if name not in self._done:
                gone = now - self._began[name] if name in self._began else 0.0
                left.append(max(0.0, (expected or 0.0) + start - gone))
        return max(max(left, default=0.0), sum(left) / self._slots) if left else None


def span(seconds: float | None) -> str:
    """Give a time for reading."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
