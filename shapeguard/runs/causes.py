"""The causes of a finished run's compiles: what changed, how often, at which line, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shapeguard.runs.advice import remedy
from shapeguard.runs.eager import eager_tracks
from shapeguard.runs.families import Family
from shapeguard.runs.owners import Batches, place
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
    own, found = eager_tracks(process, followed.tracks)
    batches = Batches(process.batches)
    causes = [_cause(track, batches) for track in (*followed.tracks, *own)]
    return Explained(
        causes=tuple(_ordered(causes)),
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


def merge(ranks: Sequence[Sequence[Cause]]) -> tuple[Cause, ...]:
    """Join the causes of the ranks: the same input at the same line is one cause, however many ranks met it."""
    merged: dict[tuple[object, ...], Cause] = {}
    for causes in ranks:
        seen: Counter[tuple[object, ...]] = Counter()
        for cause in causes:
            name = (cause.kind, bool(cause.count), cause.input, cause.dim, cause.site)
            key = (*name, seen[name])
            seen[name] += 1
            known = merged.get(key)
            merged[key] = cause if known is None else _joined(known, cause)
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


def _cause(track: Track, batches: Batches) -> Cause:
    where = place(track, batches)
    what = remedy(track, where)
    events = (*track.events, *track.eager)
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
        phases=tuple(dict.fromkeys(event.phase for event in events if event.phase)),
        first_step=min(event.step for event in events),
        last_step=max(event.step for event in events),
        site=where.site,
        role=where.role,
        pattern=what.pattern,
        rules=what.rules,
        advice=what.advice,
        guard=track.detail if track.kind == "guard" else "",
    )
