"""Why a run needs what its lock does not have: what changed, at which line, and what to do.

What changed inside the run (a short last batch after full ones) is told by the run's own causes. Where the whole run is
another (every batch is larger now), each graph is compared with the nearest one of the lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shapeguard.checks.signatures import as_compile, inputs_of, operator
from shapeguard.checks.sizes import Sizes
from shapeguard.checks.words import other_program, what_changed
from shapeguard.lock.observe import PARAMETERS, First, Observed
from shapeguard.lock.values import Lock, LockedGraph, eager_key
from shapeguard.runs.causes import Cause, explain
from shapeguard.runs.compare import Change, changes
from shapeguard.runs.tracks import text_of
from shapeguard.runs.values import Compile, Process, Site

MEANT = "if it is meant, run `shapeguard lock` and commit the lock"
_MOST_SIZES = 64
MOST_COMPARED = 50
"""So many new graphs are compared with the lock; of more, the rest is only counted."""


@dataclass(slots=True, kw_only=True)
class Reason:
    """One reason for graphs and eager signatures that the lock does not have."""

    site: Site | None
    text: str
    """What changed."""
    advice: str = ""
    rules: tuple[str, ...] = ()
    graphs: list[LockedGraph] = field(default_factory=list)
    eager: list[str] = field(default_factory=list)
    """Their lines in a lock."""


def reasons(observed: Observed, lock: Lock, graphs: Sequence[LockedGraph], eager: Sequence[str]) -> list[Reason]:
    """Give the reasons for what is new, those of graphs first."""
    finder = _Finder(observed, lock)
    found: dict[object, Reason] = {}
    for number, graph in enumerate(graphs):
        name, reason = finder.of_graph(graph, is_compared=number < MOST_COMPARED)
        found.setdefault(name, reason).graphs.append(graph)
    for line in eager:
        name, reason = finder.of_eager(line)
        known = found.setdefault(name, reason)
        known.eager.append(line)
        if known.advice == MEANT and not known.graphs and known.text != reason.text:
            known.text = "their inputs are others than in the lock"
    return sorted(_joined(list(found.values())), key=lambda reason: (not reason.graphs, reason.advice == MEANT))


def _joined(found: list[Reason]) -> list[Reason]:
    """Put eager signatures without a line of their own, or without a reason, to the reason that they share."""
    lead = next((reason for reason in found if reason.graphs), None)
    kept: list[Reason] = []
    for reason in found:
        is_vague = reason.advice == MEANT and not reason.graphs
        home = next((other for other in found if _is_home(other, reason)), None) if is_vague else None
        if home is None and not reason.graphs and reason.site is None:
            home = lead
        if home is None:
            kept.append(reason)
        else:
            home.eager += reason.eager
    return kept


def _is_home(known: Reason, vague: Reason) -> bool:
    """Whether the same operators at the same line have a better reason: the first of those that grow."""
    operators = {operator(line) for line in known.eager}
    return known.advice != MEANT and known.site == vague.site and operators >= {operator(line) for line in vague.eager}


class _Finder:
    """Finds reasons in one run, each process explained once."""

    def __init__(self, observed: Observed, lock: Lock) -> None:
        self._observed = observed
        self._job = lock.of(observed.job)
        self._alike: dict[tuple[str, str], list[LockedGraph]] = {}
        for graph in self._job.values():
            self._alike.setdefault((graph.kind, graph.model), []).append(graph)
        self._explained: dict[int, tuple[Cause, ...]] = {}
        kept = [observed.firsts[graph.key] for graph in observed.graphs.values() if graph.id in self._job]
        self._known_codes = {_code(first) for first in kept}
        found = lock.jobs.get(observed.job)
        lines = found.eager if found else ()
        self._eager: dict[str, list[str]] = {}
        for line in lines:
            self._eager.setdefault(operator(line), []).append(line)
        known = {eager_key(line) for line in lines}
        self._known_operators = {observed.firsts[key].compile.name for key in observed.eager if key in known}
        self._by_region: dict[tuple[int, int], tuple[object, Reason]] = {}
        self._by_number: dict[int, dict[int, Cause]] = {}
        self._causes_told: dict[int, Reason] = {}
        self._sizes = Sizes()

    def of_graph(self, graph: LockedGraph, *, is_compared: bool) -> tuple[object, Reason]:
        """Give the reason for a new graph, and what tells it from other reasons."""
        first = self._observed.firsts[graph.key]
        region = (id(first.process), first.region.region if first.region else -first.compile.n)
        if region not in self._by_region:
            self._by_region[region] = self._of_region(graph, first, is_compared=is_compared)
        return self._by_region[region]

    def _of_region(self, graph: LockedGraph, first: First, *, is_compared: bool) -> tuple[object, Reason]:
        """Give the reason for a region by the first of its graphs: what changes the forward changes the backward."""
        cause = self._cause_of_region(first)
        if cause is not None and _code(first) in self._known_codes:
            return self._told(cause, first)
        near = self._nearest(graph) if is_compared else None
        # With the lock's inputs and yet new: what changes inside the run tells more than "another program".
        is_inner = cause is not None and cause.kind != "mode" and near is not None and near.inputs == graph.inputs
        if near is not None and not is_inner:
            return self._against(first, near, graph)
        if cause is not None:
            return self._told(cause, first)
        text = f"the lock has no {graph.kind} graph of {graph.model or 'this function'}, which first ran here"
        return (first.site, text), Reason(site=first.site, text=_with_phase(text, first))

    def of_eager(self, line: str) -> tuple[object, Reason]:
        """Give the reason for a new eager signature."""
        first = self._observed.firsts[eager_key(line)]
        cause = self._cause_of_operator(first)
        if cause is not None and (cause.count or first.compile.name in self._known_operators):
            return id(cause), _of_cause(cause, first)
        found = self._eager_change(line, first)
        if cause is not None and not found:
            return id(cause), _of_cause(cause, first)
        site = first.compile.site
        for change in found:
            name = self._sizes.reason(change)
            if name is not None:
                return name, Reason(site=site, text="")
        text = f"{text_of(found[0])}, against the lock" if found else "the lock has none like them"
        return (site, "eager"), Reason(site=site, text=_with_phase(text, first), advice=MEANT)

    def _told(self, cause: Cause, first: First) -> tuple[object, Reason]:
        """Give a cause of the run itself; eager operators whose sizes change with it belong to it."""
        name = id(cause)
        if name not in self._causes_told:
            self._causes_told[name] = _of_cause(cause, first)
            if cause.kind == "shape":
                self._sizes.add(cause.values[:_MOST_SIZES], cause.values[:_MOST_SIZES], name)
        return name, self._causes_told[name]

    def _cause_of_region(self, first: First) -> Cause | None:
        number = first.region.region if first.region else 0
        key = id(first.process)
        if key not in self._by_number:
            # The first cause that counts a region is its reason.
            found = reversed(self._causes(first.process))
            self._by_number[key] = {region: cause for cause in found for region in cause.regions}
        return self._by_number[key].get(number) if number else None

    def _cause_of_operator(self, first: First) -> Cause | None:
        step, name = first.compile.step, first.compile.name
        for cause in self._causes(first.process):
            if cause.eager and cause.first_step <= step <= cause.last_step and name in dict(cause.ops):
                return cause
        return None

    def _causes(self, process: Process) -> tuple[Cause, ...]:
        if id(process) not in self._explained:
            self._explained[id(process)] = explain(process).causes
        return self._explained[id(process)]

    def _against(self, first: First, near: LockedGraph, graph: LockedGraph) -> tuple[object, Reason]:
        """Compare with a graph of the lock, as if it had run before in the same process."""
        region = first.region or first.compile
        old = replace(region, n=region.n - 1, region=-1, guard="", **_as_recorded(near, region))
        pair = replace(first.process, compiles=[old, region])
        causes = explain(pair).causes
        if not causes or near.inputs == graph.inputs:
            text = other_program(near, graph)
            return (first.site, text), Reason(site=first.site, text=text, advice=MEANT)
        lead = causes[0]
        for cause in self._causes(first.process):
            # What also varies inside the run is one reason, whatever it is compared with.
            if _place(cause) == _place(lead) and cause.count and {*lead.values[1:]} <= {*cause.values}:
                self._sizes.add(lead.values[:1], cause.values[:_MOST_SIZES], id(cause))
                self._known_codes.add(_code(first))
                return self._told(cause, first)
        dim = f" dim {lead.dim}" if lead.dim is not None else ""
        more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
        values = " → ".join(map(str, lead.values))
        reason = Reason(
            site=lead.site or first.site, text=f"{lead.input}{dim}: {values}{more}, against the lock", advice=MEANT
        )
        name = (reason.site, reason.text)
        if len(lead.values) == 2:
            self._sizes.add(lead.values[:1], lead.values[1:], name)
        return name, reason

    def _nearest(self, graph: LockedGraph) -> LockedGraph | None:
        """Give the graph of the lock that has most inputs in common; those that the run still needs come last."""
        alike = self._alike.get((graph.kind, graph.model), ())
        mine = set(graph.inputs)
        return min(
            alike,
            key=lambda other: (
                len(mine ^ set(other.inputs)),
                other.id in self._observed.graphs,
                abs(other.nodes - graph.nodes),
                other.key,
            ),
            default=None,
        )

    def _eager_change(self, line: str, first: First) -> tuple[Change, ...]:
        new = as_compile(line)
        olds = map(as_compile, self._eager.get(first.compile.name, ())[:64])
        found = (changes(old, new) for old in olds if len(old.inputs) == len(new.inputs))
        return min((each for each in found if each), key=len, default=())


def _place(cause: Cause) -> tuple[str, str, int | None]:
    return cause.kind, cause.input, cause.dim


def _code(first: First) -> object:
    region = first.region or first.compile
    return region.code, region.instance, region.model


def _with_phase(text: str, first: First) -> str:
    phase = first.compile.phase
    return f"{text}, in {phase}" if phase and phase != "train" else text


def _of_cause(cause: Cause, first: First) -> Reason:
    return Reason(site=cause.site or first.site, text=what_changed(cause), advice=cause.advice, rules=cause.rules)


def _as_recorded(graph: LockedGraph, like: Compile) -> dict[str, Any]:
    """Give a locked graph's inputs and constants as a run would have recorded them beside a region of this run."""
    known = {row.path: row for row in like.inputs}
    rows = []
    for row in inputs_of(graph.inputs):
        mine = known.get(row.path)
        rows.append(replace(row, device=mine.device, grad=mine.grad) if mine else row)
    # Of constants only those that both have: a lock keeps the short ones.
    values = dict(constant.partition("=")[::2] for constant in graph.constants)
    constants = tuple((path, values.get(path, value)) for path, value in like.constants)
    parameters = [row for row in like.inputs if row.path.startswith(PARAMETERS)]
    return {"inputs": (*rows, *parameters), "constants": constants}
