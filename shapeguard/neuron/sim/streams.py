"""Streams and events of the simulated device: everything runs at once, in order, so nothing ever waits."""

from __future__ import annotations

import time
from typing import Any

import torch


class Event(torch.Event):
    """An event that is always reached."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Event:
        event = super().__new__(cls, device="neuron")
        event.recorded_s = 0.0
        return event

    recorded_s: float
    """When it was recorded, in seconds."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what the real one takes (`enable_timing`, `blocking`, …)."""

    def record(self, stream: Any = None) -> None:
        self.recorded_s = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        return None

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def elapsed_time(self, other: Event) -> float:  # type: ignore[override]
        return (other.recorded_s - self.recorded_s) * 1e3


class Stream(torch.Stream):
    """A stream without a queue."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Stream:
        return super().__new__(cls, device="neuron", priority=0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what the real one takes (`device`, `priority`, …)."""

    def wait_event(self, event: Any) -> None:
        return None

    def wait_stream(self, stream: Any) -> None:
        return None

    def record_event(self, event: Any = None) -> Any:
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None
