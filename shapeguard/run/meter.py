"""Figures of a run while it goes: graphs, compiles after warm-up, padding, tokens a second."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class Meter:
    """Counts what was run; times begin when it is made."""

    buckets: set[int] = field(default_factory=set)
    real: int = 0
    """Tokens that are no padding."""
    whole: int = 0
    new: int = 0
    """Tokens that were generated."""
    late: int = 0
    """Graphs that compiled in batches of a bucket that had been run before."""
    _seen: int = 0
    _began: float = field(default_factory=time.monotonic)

    def batch_begins(self) -> None:
        """Note what had compiled before this batch."""
        self._seen = graphs()

    def batch_ended(self, bucket: object, *, real: int, whole: int, new: int = 0) -> None:
        """Count a batch."""
        if bucket in self.buckets:
            self.late += graphs() - self._seen
        self.buckets.add(bucket)  # type: ignore[arg-type]
        self.real += real
        self.whole += whole
        self.new += new

    @property
    def padding(self) -> float:
        """The share of padding among all tokens."""
        return 1 - self.real / self.whole if self.whole else 0.0

    @property
    def per_second(self) -> float:
        """Real and new tokens a second."""
        return (self.real + self.new) / max(time.monotonic() - self._began, 1e-9)

    def line(self) -> str:
        """Give the figures for people."""
        number = graphs()
        return (
            f"{len(self.buckets)} shapes, {number} graphs, {self.late} compiled after their shape's first batch, "
            f"{self.padding:.0%} padding, {self.per_second:,.0f} tokens/s"
        )


def graphs() -> int:
    """Give how many graphs this process has lowered for Neuron; 0 on the CPU."""
    neuron = getattr(torch, "neuron", None)
    metrics = getattr(neuron, "get_dynamo_metrics", None)
    return len(metrics()) if metrics is not None else 0
