"""Which recipe may begin: the first in order whose memory fits beside what runs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

MARGIN = 1.1
"""A peak of before may be passed by so much."""
FULL = 0.9
"""Share of the limit at which the youngest try is taken back."""


class Memory:
    """Keeps the sum of what running recipes may take under a limit; 0 is no limit."""

    def __init__(self, limit_bytes: int, slots: int, peaks: Mapping[str, int], *, is_strict: bool = True) -> None:
        """`is_strict`: the limit was asked for, and is not merely what is free now."""
        self.limit_bytes = limit_bytes
        self._slots = max(1, slots)
        self._peaks = dict(peaks)
        self._is_strict = is_strict

    def learn(self, recipe: str, peak_bytes: int) -> None:
        """Note what a try of a recipe has taken."""
        self._peaks[recipe] = max(peak_bytes, self._peaks.get(recipe, 0))

    def reserved(self, recipe: str) -> int:
        """Give what is set aside for a recipe: what it took before.

        One that never ran counts as the largest of those that did. Where none did, the first runs alone, so that there
        is a measure; without a limit that was asked for, each counts with its share of what is free.
        """
        if not self.limit_bytes:
            return 0
        peak = self._peaks.get(recipe) or max(self._peaks.values(), default=0)
        if not peak:
            return self.limit_bytes if self._is_strict else self.limit_bytes // self._slots
        # One that needs more than there is runs alone, and is told so when it has passed the limit.
        return min(int(peak * MARGIN), self.limit_bytes)

    def fits(self, recipe: str, running: Collection[str], held: Mapping[str, int]) -> bool:
        """Whether a recipe may begin beside those that run, with what they (and under "" idle workers) hold now."""
        if not self.limit_bytes or not running:
            return True
        taken = held.get("", 0) + sum(max(self.reserved(name), held.get(name, 0)) for name in running)
        return taken + self.reserved(recipe) <= self.limit_bytes

    def is_full(self, held: Mapping[str, int]) -> bool:
        """Whether what runs holds so much that one must go."""
        return bool(self.limit_bytes) and sum(held.values()) > self.limit_bytes * FULL


def slots_for(wanted: int, *, num_recipes: int, num_cpus: int, limit_bytes: int, peaks: Sequence[int]) -> int:
    """Give how many recipes run at once: as asked for, or (0) as many as processors and memory carry."""
    if wanted:
        return max(1, min(wanted, num_recipes))
    by_memory = limit_bytes // int(max(peaks) * MARGIN) if limit_bytes and peaks else num_cpus
    return max(1, min(num_cpus, by_memory, num_recipes))
