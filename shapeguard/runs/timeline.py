"""When a run compiled: regions and eager signatures by step, in at most so many bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapeguard.runs.values import Process

MOST_BARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Rows of first step, regions, and signatures of eager operators; each row stands for so many steps."""

    steps_each: int = 1
    rows: tuple[tuple[int, int, int], ...] = ()

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        return {"steps_each": self.steps_each, "rows": [list(row) for row in self.rows]}


def timeline(ranks: Sequence[Sequence[Process]]) -> Timeline:
    """Give the steps of the rank that compiled the most regions."""
    lines = [_counts(processes) for processes in ranks]
    counts = max(lines, key=lambda found: sum(regions for regions, _ in found.values()), default={})
    steps = max((process.num_steps for processes in ranks for process in processes), default=0)
    last = max(max(counts, default=0), steps)
    each = max(1, -(-(last + 1) // MOST_BARS))
    first = 0 if 0 in counts or each > 1 else 1
    rows = []
    for begin in range(first, last + 1, each):
        inside = [counts[step] for step in range(begin, begin + each) if step in counts]
        rows.append((begin, sum(regions for regions, _ in inside), sum(eager for _, eager in inside)))
    return Timeline(steps_each=each, rows=tuple(rows) if counts else ())


def _counts(processes: Iterable[Process]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for process in processes:
        for compile in process.compiles:
            if compile.is_region:
                found.setdefault(compile.step, [0, 0])[0] += 1
            elif compile.is_eager:
                found.setdefault(compile.step, [0, 0])[1] += 1
    return found
