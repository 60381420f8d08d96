"""What it costs to compile what is missing: seconds and bytes, each with how it is known; unknown stays unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shapeguard.core.cost import EAGER_S, compile_s
from shapeguard.core.graphs import GraphRecord
from shapeguard.warmup.values import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A sum, of which some parts may be guessed and others unknown."""

    known: float = 0.0
    """Of parts that a record has measured."""
    guessed: float = 0.0
    """Of parts that are guessed by their size."""
    num_known: int = 0
    num_guessed: int = 0
    num_unknown: int = 0

    @property
    def total(self) -> float | None:
        """Give the sum of all that is known or guessed; None where nothing is."""
        return self.known + self.guessed if self.num_known or self.num_guessed else None

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            known=self.known + other.known,
            guessed=self.guessed + other.guessed,
            num_known=self.num_known + other.num_known,
            num_guessed=self.num_guessed + other.num_guessed,
            num_unknown=self.num_unknown + other.num_unknown,
        )


NOTHING = Estimate()


class Estimator:
    """Estimates graphs by the records of them, whatever compiler or machine they are of."""

    def __init__(self, records: Iterable[GraphRecord], *, device: str) -> None:
        self._seconds: dict[str, float] = {}
        self._bytes: dict[str, int] = {}
        for record in records:
            if record.key.device != device:
                continue
            if record.compile_s is not None:
                self._seconds[record.key.graph] = max(record.compile_s, self._seconds.get(record.key.graph, 0.0))
            if record.neff is not None:
                self._bytes[record.key.graph] = record.neff.size_bytes

    def seconds(self, needs: Iterable[Need]) -> Estimate:
        """Give the seconds to compile graphs one after the other."""
        total = NOTHING
        for need in needs:
            if need.key in self._seconds:
                total += Estimate(known=self._seconds[need.key], num_known=1)
            elif need.nodes or not need.is_graph:
                guess = compile_s(need.nodes) if need.is_graph else EAGER_S
                total += Estimate(guessed=guess, num_guessed=1)
            else:
                total += Estimate(num_unknown=1)
        return total

    def size_bytes(self, needs: Iterable[Need]) -> Estimate:
        """Give the bytes of their files: only what a record has seen, sizes are not guessed."""
        total = NOTHING
        for need in needs:
            size = self._bytes.get(need.key)
            total += Estimate(num_unknown=1) if size is None else Estimate(known=float(size), num_known=1)
        return total


def makespan_s(seconds: Mapping[str, float], slots: int) -> float:
    """Give how long works take on so many workers, the longest first."""
    loads = [0.0] * max(1, slots)
    for each in sorted(seconds.values(), reverse=True):
        loads[loads.index(min(loads))] += each
    return max(loads)
