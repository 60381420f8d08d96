"""How many buckets: the most that may compile, the fewest that keep a cap, or what costs least in all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from shapeguard.buckets.fit import Fit
from shapeguard.buckets.plan import MAX_BUCKETS, Planner
from shapeguard.core.errors import UsageError

_CURVE = 12
"""Numbers of buckets that a curve shows at least."""
GRAPHS: Mapping[str, int] = {"infer": 1, "train": 2}
"""Region graphs that one bucket compiles: training has a forward and a backward one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a compile and a token cost."""

    compile_minutes: float
    """Of one graph."""
    tokens_per_second: float
    """Of real tokens, were nothing padded."""
    traffic: int
    """Rows that the compiled graphs will serve."""
    per_hour: float | None = None
    """Price of the device; without it hours are compared."""

    def compile_hours(self, graphs: int) -> float:
        """Give the hours that compiling takes."""
        return graphs * self.compile_minutes / 60

    def run_hours(self, fit: Fit) -> float:
        """Give the hours that the traffic takes, padding and all."""
        rows = sum(fit.rows)
        if not rows or not fit.real_work:
            return 0.0
        try:
            real_seconds = fit.real_tokens / rows * self.traffic / self.tokens_per_second
            return real_seconds * (fit.work / fit.real_work) / 3600
        except OverflowError:
            return inf  # more hours than a number holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a plan must keep."""

    use: str = "infer"
    max_graphs: int | None = None
    max_waste: float | None = None
    """Share of the work that padding may take."""
    price: Price | None = None

    @property
    def graphs_each(self) -> int:
        """Graphs of one bucket."""
        return GRAPHS[self.use]

    @property
    def max_buckets(self) -> int:
        """The most buckets that the graphs allow."""
        if self.max_graphs is None:
            return MAX_BUCKETS
        if self.max_graphs < self.graphs_each:
            raise UsageError(
                f"--max-graphs {self.max_graphs} leaves no bucket: each makes {self.graphs_each} with --for {self.use}",
                hint=f"give --max-graphs {self.graphs_each} or more",
            )
        return min(MAX_BUCKETS, self.max_graphs // self.graphs_each)

    def cost(self, fit: Fit) -> float:
        """Give the hours in all; 0 without a price."""
        if self.price is None:
            return 0.0
        return self.price.compile_hours(len(fit.buckets) * self.graphs_each) + self.price.run_hours(fit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A plan, and what other numbers of buckets would do."""

    fit: Fit
    curve: tuple[Fit, ...]
    failure: str = ""
    """Which cap could not be kept; then `fit` is the nearest to it."""


def choose(planner: Planner, wanted: Wanted) -> Choice:
    """Give the plan that was asked for; `UsageError` where a row's padding cap needs more buckets than allowed."""
    most = wanted.max_buckets
    chosen = _cheapest(planner, wanted, most) if wanted.price else _fewest(planner, wanted.max_waste, most)
    if chosen is None:
        raise UsageError(
            f"{_counted(most)} cannot keep every row's padding within {planner.limits.max_pad} tokens",
            hint=f"{_needed(planner, most)}raise --max-pad",
        )
    shown = max(_CURVE, len(chosen.buckets) + 2)
    failure = ""
    if wanted.max_waste is not None and chosen.waste > wanted.max_waste:
        failure = _unkept(planner, wanted, chosen)
    return Choice(fit=chosen, curve=tuple(planner.curve(shown)), failure=failure)


def _fewest(planner: Planner, max_waste: float | None, most: int) -> Fit | None:
    """The fewest buckets that keep the cap; without a cap, or where none does, the most."""
    if max_waste is None:
        return planner.fit(most)
    last = None
    for last in planner.curve(most):
        if last.waste <= max_waste:
            break
    return last


def _cheapest(planner: Planner, wanted: Wanted, most: int) -> Fit | None:
    """The number with the least cost among those that keep the cap."""
    best = None
    for fit in planner.curve(most):
        keeps = wanted.max_waste is None or fit.waste <= wanted.max_waste
        # Another bucket saves less than the one before it did, so that the first rise ends the search.
        if best is not None and keeps and wanted.cost(fit) >= wanted.cost(best):
            break
        if keeps:
            best = fit
    return best or planner.fit(most)


def _unkept(planner: Planner, wanted: Wanted, chosen: Fit) -> str:
    assert wanted.max_waste is not None
    cap = f"{wanted.max_waste:.1%}"
    message = f"{_counted(len(chosen.buckets))} still waste {chosen.waste:.1%}, more than {cap}"
    if len(chosen.buckets) == planner.most:
        return f"{message}: more buckets do not help, the alignment of {planner.limits.align} pads so much by itself"
    needed = next((fit for fit in planner.curve(MAX_BUCKETS) if fit.waste <= wanted.max_waste), None)
    if needed is None:
        return f"{message}; so would {MAX_BUCKETS}"
    return (
        f"{message}; {_counted(len(needed.buckets))} would keep it ({len(needed.buckets) * wanted.graphs_each} graphs)"
    )


def _needed(planner: Planner, most: int) -> str:
    needed = next(planner.curve(MAX_BUCKETS), None)
    if needed is None or len(needed.buckets) <= most:
        return ""
    return f"{_counted(len(needed.buckets))} can: raise --max-graphs or "


def _counted(number: int) -> str:
    return "1 bucket" if number == 1 else f"{number} buckets"
