"""Whether a run became steady, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapeguard.runs.totals import Totals
from shapeguard.runs.values import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What compiled after warm-up in place of an earlier one: recompiles, not first compiles."""

    regions: int = 0
    eager: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """The verdict on a run, one line, and the step after which nothing compiled (None: not steady)."""

    verdict: str
    after: int | None = None


def steadiness(processes: Sequence[Process], totals: Totals, again: Again) -> Steadiness:
    """Judge a run by what compiled after warm-up."""
    steps = max((process.num_steps for process in processes), default=0)
    compiles = [c for process in processes for c in process.compiles if c.is_region or c.is_eager or c.is_graph]
    if not processes:
        return Steadiness(verdict="no process of the program imported torch: nothing was seen")
    if not compiles and totals.failed:
        return Steadiness(verdict=f"nothing compiled: {totals.failed} region{'s' * (totals.failed != 1)} failed")
    if not compiles and any(process.placements for process in processes):
        return Steadiness(verdict="nothing ran on the Neuron device")
    if not compiles:
        return Steadiness(verdict="no forward of a model and no compile was seen")
    last = max(compile.step for compile in compiles)
    is_late = bool(totals.late_regions or totals.late_eager)
    # A part that first runs late (an evaluation, a second model) compiles once; only a run that goes on tells.
    if again.regions or again.eager or totals.limits or (is_late and 2 * last > steps):
        return Steadiness(verdict=_unsteady(processes, totals, again, steps))
    if steps <= max((process.warmup_steps for process in processes), default=2):
        seen = "no step was seen" if not steps else f"only {steps} {'step was' if steps == 1 else 'steps were'} seen"
        return Steadiness(verdict=f"{seen}: too few to say whether it stays steady")
    rest = "nothing compiled after warm-up" if not is_late else "what compiled after warm-up did so for the first time"
    return Steadiness(verdict=f"steady after step {last}: {rest} ({steps} steps seen)", after=last)


def _unsteady(processes: Sequence[Process], totals: Totals, again: Again, steps: int) -> str:
    last = max((c.step for process in processes for c in process.compiles if c.is_region), default=0)
    parts = []
    if totals.late_regions and (again.regions or not again.eager):
        late = f"{totals.late_regions} of {totals.regions} regions came after warm-up"
        parts.append(f"still compiling: {late} (the last at step {last} of {steps})")
    elif totals.late_eager:
        regions = "no region did" if totals.regions else "there is no compiled region"
        late = f"{totals.late_eager} of {totals.eager} eager signatures came after warm-up"
        parts.append(f"still compiling: {late}, {regions}")
    if totals.limits:
        what = "one code object" if totals.limits == 1 else f"{totals.limits} code objects"
        parts.append(f"{what} reached Dynamo's recompile limit and now run{'s' if totals.limits == 1 else ''} eagerly")
    return "; ".join(parts)
