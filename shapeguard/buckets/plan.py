"""Which lengths to compile for: the exact optimum of padding for every number of buckets.

Rows of one length go into the smallest bucket that holds them, so a plan cuts the sorted lengths into runs, and a run
costs its number of rows times the work at its largest (aligned) length. That cost has the Monge property for every
work that grows with the length: the best cut moves right as the end of the prefix does. One layer, the best cost with
one bucket more, is therefore found in one pass with a queue of cuts that can still win, in whole numbers throughout.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from shapeguard.buckets.fit import ANY_LENGTH, TOKENS, Fit, Limits, Work, real
from shapeguard.core.errors import UsageError

MAX_BUCKETS = 256
"""More lengths than anybody compiles; a search for the smallest number ends there."""


class Planner:
    """The best buckets for one histogram of lengths, for each number of buckets."""

    def __init__(
        self,
        lengths: Mapping[int, int],
        *,
        limits: Limits = ANY_LENGTH,
        work: Work = TOKENS,
        real_tokens: int | None = None,
    ) -> None:
        """Rows that are longer than the largest bucket are left out; `UsageError` where none is left.

        `real_tokens` says how many tokens are none of padding where the lengths themselves were padded already.
        """
        self.limits = limits
        self.work = work
        self.lengths = _checked(lengths, limits)
        self.misfits = {each: count for each, count in lengths.items() if count and each not in self.lengths}
        groups: dict[int, list[int]] = {}
        for length in sorted(self.lengths):
            groups.setdefault(limits.aligned(length), []).append(length)
        self._sizes = list(groups)
        self._work = [work.of(size) for size in self._sizes]
        self._rows = [0, *accumulate(sum(self.lengths[each] for each in group) for group in groups.values())]
        self._real_tokens, self._real_work = real(self.lengths, work, None if self.misfits else real_tokens)
        self._expiry = _expiries(self._sizes, self._work, [group[0] for group in groups.values()], limits.max_pad)
        self._costs: list[int | None] = [0, *[None] * len(groups)]
        self._cuts: list[array[int]] = []
        self._totals: list[int | None] = []

    @property
    def most(self) -> int:
        """The number of buckets from which on more of them change nothing."""
        return len(self._sizes)

    def buckets(self, number: int) -> tuple[int, ...] | None:
        """Give the best buckets of that number, or None where so few cannot keep `max_pad`."""
        ends = self._ends(number)
        return None if ends is None else tuple(self._sizes[end - 1] for end in ends)

    def fit(self, number: int) -> Fit | None:
        """Give what the best buckets of that number do."""
        ends = self._ends(number)
        if ends is None:
            return None
        rows = tuple(self._rows[end] - self._rows[start] for start, end in zip((0, *ends), ends, strict=False))
        return Fit(
            buckets=tuple(self._sizes[end - 1] for end in ends),
            rows=rows,
            misfits=self.misfits,
            real_tokens=self._real_tokens,
            tokens=sum(self._sizes[end - 1] * count for end, count in zip(ends, rows, strict=True)),
            real_work=self._real_work,
            work=sum(self._work[end - 1] * count for end, count in zip(ends, rows, strict=True)),
        )

    def curve(self, most: int) -> Iterator[Fit]:
        """Give the best fit for 1, 2, … buckets, leaving out numbers that cannot keep `max_pad`."""
        for number in range(1, min(most, self.most) + 1):
            found = self.fit(number)
            if found is not None:
                yield found

    def _ends(self, number: int) -> tuple[int, ...] | None:
        """Where the runs of the best plan end, counted in distinct aligned lengths."""
        number = min(number, self.most)
        while len(self._cuts) < number:
            self._add_layer()
        if self._totals[number - 1] is None:
            return None
        ends = [self.most]
        for cuts in reversed(self._cuts[1:number]):
            ends.append(cuts[ends[-1]])
        return tuple(reversed(ends))

    def _add_layer(self) -> None:
        """Find the best cost of every prefix with one bucket more."""
        before, rows, expiry = self._costs, self._rows, self._expiry
        costs: list[int | None] = [None] * len(before)
        cuts = array("i", bytes(4 * len(before)))
        queue: list[int] = []  # cuts that can still win, in the order in which they do
        marks: list[int] = []  # for each of them: it beats the one before it where a row's work is larger than this
        first = 0  # the cut of the queue that wins now
        for cut, work in enumerate(self._work):
            base = before[cut]
            if base is not None:
                mark = -1
                while len(queue) > first:
                    last = queue[-1]
                    # Rows between the two cuts are charged to `last` only: the larger the work, the better the later.
                    mark = (base - before[last]) // (rows[cut] - rows[last])  # type: ignore[operator]
                    if mark > expiry[last]:
                        mark = expiry[last]
                    if mark > marks[-1]:
                        break
                    queue.pop()
                    marks.pop()
                marks.append(mark if len(queue) > first else -1)
                queue.append(cut)
            while len(queue) > first + 1 and marks[first + 1] < work:
                first += 1
            if len(queue) > first and work <= expiry[queue[first]]:
                best = queue[first]
                costs[cut + 1] = before[best] + work * (rows[cut + 1] - rows[best])  # type: ignore[operator]
                cuts[cut + 1] = best
        self._costs = costs
        self._cuts.append(cuts)
        self._totals.append(costs[-1])


def _checked(lengths: Mapping[int, int], limits: Limits) -> dict[int, int]:
    if limits.align < 1:
        raise UsageError(f"the alignment {limits.align} is not a positive number", hint="give --align 1 for none")
    rows = {length: count for length, count in lengths.items() if count}
    if not rows:
        raise UsageError("there are no lengths to plan for", hint="give a file with one length a line")
    negative = min(min(rows), *rows.values()) if rows else 0
    if negative < 0:
        raise UsageError(f"{negative} is no length and no number of rows", hint="lengths and counts start at 0")
    longest = limits.max_length
    kept = rows if longest is None else {length: count for length, count in rows.items() if length <= longest}
    if not kept:
        raise UsageError(
            f"every row is longer than {longest}: the shortest has {min(rows)} tokens",
            hint="raise --max-length, or give --truncate if rows may be cut",
        )
    _check_padding(kept, limits)
    return kept


def _check_padding(rows: Mapping[int, int], limits: Limits) -> None:
    if limits.max_pad is None:
        return
    length = max(rows, key=lambda each: limits.aligned(each) - each)
    padding = limits.aligned(length) - length
    if padding > limits.max_pad:
        raise UsageError(
            f"a row of {length} tokens gets {padding} of padding in the smallest multiple of {limits.align} "
            f"that holds it, more than {limits.max_pad}",
            hint="raise --max-pad or lower --align",
        )


def _expiries(sizes: Sequence[int], work: Sequence[int], shortest: Sequence[int], max_pad: int | None) -> list[int]:
    """For each cut, the most work of a bucket that does not pad the row after the cut too much."""
    if max_pad is None:
        return [work[-1]] * len(sizes)
    return [work[bisect_right(sizes, length + max_pad) - 1] for length in shortest]
