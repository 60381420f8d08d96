"""Which sizes changed for which reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from shapeguard.runs.compare import Change


class Sizes:
    """The reasons by sizes, so that what changes with them is not told as a reason of its own."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[int, int], object] = {}

    def add(self, old: Sequence[int | str], new: Sequence[int | str], reason: object) -> None:
        """Note that a size changed from any of the first to any of the second."""
        for pair in product(old, new):
            if isinstance(pair[0], int) and isinstance(pair[1], int) and pair[0] != pair[1]:
                self._reasons.setdefault((pair[0], pair[1]), reason)

    def reason(self, change: Change) -> object | None:
        """Give the reason for a change of the same sizes, of sizes one off (shifted labels), or of multiples."""
        old, new = _one_size(change.old, change.new)
        if not (isinstance(old, int) and isinstance(new, int)):
            return None
        if (old, new) in self._reasons:
            return self._reasons[old, new]
        if (old + 1, new + 1) in self._reasons:
            return self._reasons[old + 1, new + 1]
        return next(
            (reason for (a, b), reason in self._reasons.items() if a > 1 and b > 1 and old * b == new * a), None
        )


def _one_size(old: int | str, new: int | str) -> tuple[int | str, int | str]:
    """Give the one size in which two lists of sizes (`zeros` takes one) differ."""
    before, after = (re.findall(r"-?\d+", value) if isinstance(value, str) else [] for value in (old, new))
    differing = [(int(a), int(b)) for a, b in zip(before, after, strict=False) if a != b]
    return differing[0] if len(before) == len(after) and len(differing) == 1 else (old, new)
