"""The fewest sets that cover what is missing: exactly where that can be had quickly, else greedily with a bound."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_MOST_TRIES = 50_000
"""Choices that the exact search looks at before it gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover(Generic[K]):
    """Chosen sets."""

    names: tuple[str, ...]
    is_exact: bool
    """Whether fewer cannot do it (and of as few, none cost less)."""
    at_least: int
    """Fewer than so many cannot do it, whoever chooses."""
    uncovered: frozenset[K] = frozenset()
    """What is in no set."""


def cover(wanted: frozenset[K], sets: Mapping[str, frozenset[K]], costs: Mapping[str, float]) -> Cover[K]:
    """Choose the fewest sets that have all that is wanted; of as few, the cheapest; ties go by name."""
    useful = {name: found for name in sorted(sets) if (found := sets[name] & wanted)}
    within = frozenset().union(*useful.values())
    uncovered = wanted - within
    forced, left = _forced(useful, within)
    rest = _without_lesser({name: useful[name] & left for name in useful if name not in forced}, costs)
    greedy = _greedy(left, rest, costs)
    search = _Search(rest, costs, best=greedy)
    search.run(left, ())
    chosen = search.best
    bound = len(chosen) if search.is_whole else max(1, math.ceil(len(left) / max(map(len, rest.values()), default=1)))
    return Cover(
        names=tuple(sorted((*forced, *chosen))),
        is_exact=search.is_whole,
        at_least=len(forced) + (bound if left else 0),
        uncovered=uncovered,
    )


def _forced(sets: Mapping[str, frozenset[K]], wanted: frozenset[K]) -> tuple[list[str], frozenset[K]]:
    """Take the sets that alone have something; gives what is then still wanted."""
    owners: dict[K, list[str]] = {}
    for name, found in sets.items():
        for key in found:
            owners.setdefault(key, []).append(name)
    forced = sorted({names[0] for names in owners.values() if len(names) == 1})
    return forced, wanted - frozenset().union(*(sets[name] for name in forced))


def _without_lesser(sets: Mapping[str, frozenset[K]], costs: Mapping[str, float]) -> dict[str, frozenset[K]]:
    """Drop what another set does as well and no dearer."""
    kept: dict[str, frozenset[K]] = {}
    for name in sorted(sets, key=lambda each: (-len(sets[each]), costs.get(each, 0.0), each)):
        if sets[name] and not any(
            sets[name] <= found and costs.get(other, 0.0) <= costs.get(name, 0.0) for other, found in kept.items()
        ):
            kept[name] = sets[name]
    return kept


def _greedy(wanted: frozenset[K], sets: Mapping[str, frozenset[K]], costs: Mapping[str, float]) -> tuple[str, ...]:
    chosen: list[str] = []
    while wanted:
        best = min(sets, key=lambda name: (-len(sets[name] & wanted), costs.get(name, 0.0), name))
        chosen.append(best)
        wanted = wanted - sets[best]
    return tuple(chosen)


class _Search(Generic[K]):
    """Branch and bound: by the key that the fewest sets have, best set first."""

    def __init__(self, sets: Mapping[str, frozenset[K]], costs: Mapping[str, float], *, best: tuple[str, ...]) -> None:
        self._sets = sets
        self._costs = costs
        self._tries = 0
        self._largest = max(map(len, sets.values()), default=1)
        self.best = best

    @property
    def is_whole(self) -> bool:
        """Whether every choice was looked at."""
        return self._tries <= _MOST_TRIES

    def run(self, wanted: frozenset[K], chosen: tuple[str, ...]) -> None:
        self._tries += 1
        if not wanted:
            if self._rank(chosen) < self._rank(self.best):
                self.best = chosen
            return
        if not self.is_whole or len(chosen) + math.ceil(len(wanted) / self._largest) > len(self.best):
            return
        for name in self._owners(wanted):
            self.run(wanted - self._sets[name], (*chosen, name))

    def _owners(self, wanted: frozenset[K]) -> list[str]:
        owners = {key: [name for name, found in self._sets.items() if key in found] for key in wanted}
        fewest = min(owners.values(), key=lambda names: (len(names), names))
        return sorted(fewest, key=lambda name: (-len(self._sets[name] & wanted), self._costs.get(name, 0.0), name))

    def _rank(self, chosen: tuple[str, ...]) -> tuple[int, float, tuple[str, ...]]:
        return len(chosen), sum(self._costs.get(name, 0.0) for name in chosen), tuple(sorted(chosen))
