"""The causes of a finished run's compiles: what changed, how often, at which line, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shapeguard.core.events import Outcome
from shapeguard.runs.advice import SAME_GRAPH, remedy
from shapeguard.runs.breaks import broken
from shapeguard.runs.eager import eager_tracks
from shapeguard.runs.families import Family
from shapeguard.runs.owners import Batches, Cuts, Place, place
from shapeguard.runs.series import Value
from shapeguard.runs.steady import Again
from shapeguard.runs.totals import late
from shapeguard.runs.tracks import Followed, Label, Track, follow
from shapeguard.runs.values import Process, Site

MOST_VALUES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason for compiles."""

    kind: str
    """The class: shape, dtype, value, mode, layout, device, guard, limit."""
    input: str
    dim: int | None
    also: tuple[str, ...]
    """Other inputs that change with it."""
    values: tuple[Value, ...]
    """Distinct, in the order seen."""
    count: int
    """Regions compiled for it, without the first."""
    eager: int
    """Signatures of eager operators compiled for it."""
    ops: tuple[tuple[str, int], ...]
    """Those operators with their signatures, most first."""
    phases: tuple[str, ...]
    first_step: int
    last_step: int
    site: Site | None
    role: str
    """What the line does, where it owns the shape: move, collate, tokenize, loader."""
    pattern: str
    rules: tuple[str, ...]
    advice: str
    guard: str = ""
    late: int = 0
    """Of its regions, those after warm-up."""
    found: str = ""
    """The finding of the linter behind it, `SG302, train.py:22`; empty where the file was not at hand."""
    overlap: int = 0
    """Of its regions, those that a cause before it counts too: two things changed at once."""
    regions: tuple[int, ...] = ()
    """Numbers of its regions in their process; not told, it serves to count overlaps."""

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        row: dict[str, object] = {
            "class": self.kind,
            "input": self.input,
            "dim": self.dim,
            "also": list(self.also),
            "values": list(self.values[:MOST_VALUES]),
            "num_values": len(self.values),
            "count": self.count,
            "overlap": self.overlap,
            "after_warmup": self.late,
            "eager": self.eager,
            "ops": [{"op": op, "signatures": num} for op, num in self.ops],
            "phases": list(self.phases),
            "first_step": self.first_step,
            "last_step": self.last_step,
            "role": self.role,
            "pattern": self.pattern,
            "rules": list(self.rules),
            "advice": self.advice,
        }
        if self.site:
            row["site"] = self.site.plain()
        if self.guard:
            row["guard"] = self.guard
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why a process compiled what it compiled."""

    causes: tuple[Cause, ...] = ()
    labels: Mapping[int, Label] = field(default_factory=dict)
    """By the number of the region."""
    families: tuple[Family, ...] = ()
    again: Again = field(default_factory=Again)


def explain(process: Process) -> Explained:
    """Give the causes of one process, regions first, the most frequent first."""
    followed: Followed = follow(process.compiles)
    regions = (compile for compile in process.compiles if compile.kind == "region")
    followed.tracks = broken(followed.tracks, regions, process.breaks, followed.labels)
    own, found = eager_tracks(process, followed.tracks)
    batches, cuts = Batches(process.batches), Cuts(process.compiles)
    known = _known_graphs(process)
    causes = [
        _cause(track, place(track, batches, cuts), known, process.warmup_steps) for track in (*followed.tracks, *own)
    ]
    return Explained(
        causes=tuple(_overlapping(_ordered(causes))),
        labels=followed.labels,
        families=tuple(found),
        again=_again(process, followed, own),
    )


def _again(process: Process, followed: Followed, own: Sequence[Track]) -> Again:
    eager = {event.n for track in (*followed.tracks, *own) for event in track.eager}
    return Again(
        regions=sum(followed.labels[region.region].kind != "first" for region in late(process, regions=True)),
        eager=sum(compile.n in eager for compile in late(process, regions=False)),
    )


def _known_graphs(process: Process) -> frozenset[int]:
    """Give the regions whose graphs all were known: Dynamo compiled them again, Neuron has nothing to compile."""
    outcomes: dict[int, set[str]] = {}
    for compile in process.compiles:
        if compile.is_graph:
            outcomes.setdefault(compile.region, set()).add(compile.outcome)
    return frozenset(region for region, seen in outcomes.items() if seen == {Outcome.SHARED})


def _overlapping(causes: Iterable[Cause]) -> Iterable[Cause]:
    counted: set[int] = set()
    for cause in causes:
        if cause.kind != "limit":
            cause = replace(cause, overlap=len(counted & set(cause.regions)))
            counted.update(cause.regions)
        yield cause


def together(processes: Sequence[Sequence[Cause]]) -> tuple[Cause, ...]:
    """Join the causes of the processes of one rank: the same one, met by several, is one with all their counts."""
    return _merged(processes, _added)


def _added(known: Cause, other: Cause) -> Cause:
    return replace(
        _joined(known, other),
        count=known.count + other.count,
        eager=known.eager + other.eager,
        overlap=known.overlap + other.overlap,
        late=known.late + other.late,
    )


def merge(ranks: Sequence[Sequence[Cause]]) -> tuple[Cause, ...]:
    """Join the causes of the ranks: the same input at the same line is one cause, however many ranks met it."""
    return _merged(ranks, _joined)


def _merged(ranks: Sequence[Sequence[Cause]], join: Callable[[Cause, Cause], Cause]) -> tuple[Cause, ...]:
    merged: dict[tuple[object, ...], Cause] = {}
    for causes in ranks:
        seen: Counter[tuple[object, ...]] = Counter()
        for cause in causes:
            name = (cause.kind, bool(cause.count), cause.input, cause.dim, cause.site)
            key = (*name, seen[name])
            seen[name] += 1
            known = merged.get(key)
            merged[key] = cause if known is None else join(known, cause)
    return tuple(_ordered(merged.values()))


def _joined(known: Cause, other: Cause) -> Cause:
    more = tuple(value for value in other.values if value not in known.values)
    lead = known if known.count + known.eager >= other.count + other.eager else other
    return replace(
        lead,
        values=known.values + more,
        first_step=min(known.first_step, other.first_step),
        last_step=max(known.last_step, other.last_step),
    )


def _ordered(causes: Iterable[Cause]) -> list[Cause]:
    return sorted(causes, key=lambda cause: (cause.kind == "limit", -cause.count, -cause.eager))


def _cause(track: Track, where: Place, known: frozenset[int], warmup_steps: int) -> Cause:
    is_known = track.kind == "guard" and all(event.region in known for event in track.events)
    what = SAME_GRAPH if is_known else remedy(track, where)
    events = (*track.events, *track.eager)
    steps = [event.step for event in events] or [track.origin.step if track.origin else 0]
    phases = [event.phase for event in events] or [track.origin.phase if track.origin else ""]
    ops = Counter(event.name for event in track.eager)
    name = track.at.path
    return Cause(
        kind=track.kind,
        input=name,
        dim=track.at.dim,
        also=tuple(dict.fromkeys(at.path for at in track.also if at.path not in (name, f"len({name})"))),
        values=tuple(track.values),
        count=len(track.events),
        eager=len({event.key or event.n for event in track.eager}),
        ops=tuple(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        phases=tuple(dict.fromkeys(phase for phase in phases if phase)),
        first_step=min(steps),
        last_step=max(steps),
        site=where.site,
        role=where.role,
        pattern=what.pattern,
        rules=what.rules,
        advice=what.advice,
        guard=track.detail if track.kind == "guard" else "",
        regions=tuple(event.region for event in track.events),
        late=sum(event.phase_step > warmup_steps for event in track.events),
    )
