"""Find the line that a user has to change: the one that owns the shape, not the one that met it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapeguard.runs.compare import Position, value_at
from shapeguard.runs.series import common_multiple, whole
from shapeguard.runs.tracks import Track
from shapeguard.runs.values import Batch, Compile, Site

BATCH_ROLES = ("loader", "collate")
LENGTH_ROLES = ("collate", "tokenize", "loader")
CUTS = ("masked_select", "nonzero", "_unique2", "unique_dim", "unique_consecutive")
"""Operators whose result has as many rows as the values say."""
_MOST_BUCKETS = 16
_ENOUGH = 20
"""Batches of one size that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cause is mended, and how that is known."""

    site: Site | None
    role: str = ""
    """The owner's role; empty where it is the line that met the shape. "cut" is a size that depends on values."""
    roles: frozenset[str] = field(default_factory=frozenset)
    """All roles that were seen."""
    last_batch: bool = False
    """The sizes after the first came with the last, short batch of a loader."""
    buckets: bool = False
    """The sizes are few, and each came again and again."""


class Batches:
    """The batches of a process, by the sizes in them."""

    def __init__(self, batches: Mapping[Batch, int]) -> None:
        self._by_size: dict[tuple[int, int | str], list[Batch]] = {}
        self._times: Counter[tuple[int, int | str]] = Counter()
        for batch, times in batches.items():
            for place in {(dim, size) for _, shape in batch.shapes for dim, size in enumerate(shape)}:
                self._times[place] += times
                found = self._by_size.setdefault(place, [])
                if len(found) < _ENOUGH:
                    found.append(batch)

    def matching(self, track: Track) -> list[Batch]:
        """Give batches that brought the later values; none unless every value was brought by one."""
        if track.at.dim is None:
            return []
        hits = [self._by_size.get((track.at.dim, value), []) for value in track.values[1:]]
        return [batch for found in hits for batch in found] if all(hits) else []

    def are_buckets(self, track: Track) -> bool:
        """Whether the sizes are few and round, and each came in several batches: fixed lengths, not the longest row."""
        sizes = whole(track.values)
        if track.at.dim in (None, 0) or sizes is None or not 2 <= len(sizes) <= _MOST_BUCKETS:
            return False
        # The largest may be the model's limit, which is not always round.
        if not common_multiple(sorted(sizes)[:-1] if len(sizes) > 2 else sizes):
            return False
        times = [self._times.get((track.at.dim, size), 0) for size in sizes]
        return sum(times) >= 3 * len(sizes) and sum(count > 1 for count in times) >= len(sizes) - 1


class Cuts:
    """Lines that cut a tensor to a size that depends on values, by the sizes they gave."""

    def __init__(self, compiles: Sequence[Compile]) -> None:
        self._by_size: dict[int | str, set[Site]] = {}
        eager = [compile for compile in compiles if compile.is_eager and compile.site is not None]
        lines = {compile.site for compile in eager if compile.name in CUTS}
        for compile in eager:
            if compile.site is not None and compile.site in lines:
                # `x[mask]` looks its rows up by their numbers: those are as many as the mask has.
                for size in {row.shape[0] for row in compile.inputs if len(row.shape) == 1 and row.dtype == "int64"}:
                    self._by_size.setdefault(size, set()).add(compile.site)

    def line(self, track: Track) -> Site | None:
        """Give the line that made all of a track's sizes."""
        if len(self._by_size) < 2 or len(track.values) < 2:
            return None
        lines = [self._by_size.get(value, set()) for value in track.values]
        shared = set.intersection(*lines)
        return min(shared) if shared else None


def place(track: Track, batches: Batches, cuts: Cuts) -> Place:
    """Give the line that owns a track's change."""
    events = track.events or track.eager
    if track.origin is not None:
        return Place(site=track.origin.site)
    own = track.site or _common(event.site for event in events) or _common(event.code for event in events)
    owners = _owners(events, track.at)
    if track.kind == "dynamic" and owners.get("dynamic"):
        return Place(site=owners["dynamic"].most_common(1)[0][0], role="dynamic")
    if track.kind in ("dtype", "device") and owners.get("move"):
        return Place(site=owners["move"].most_common(1)[0][0], role="move")
    if track.kind != "shape":
        return Place(site=own)
    if cut := cuts.line(track):
        return Place(site=cut, role="cut")
    matching = batches.matching(track)
    for batch in matching:
        owners.setdefault("collate", Counter()).update(filter(None, [batch.site]))
        owners.setdefault("loader", Counter()).update(filter(None, [batch.loader]))
    role = next((role for role in _wanted(track) if owners.get(role)), "")
    return Place(
        site=owners[role].most_common(1)[0][0] if role else own,
        role=role,
        roles=frozenset(role for role, sites in owners.items() if sites),
        last_batch=bool(matching) and all(batch.last for batch in matching),
        buckets=batches.are_buckets(track),
    )


def is_batch_dim(track: Track) -> bool:
    """Whether the change runs through the first dimension of an input."""
    return track.kind == "shape" and track.at.dim == 0


def is_in_cache(track: Track) -> bool:
    """Whether the change runs through keys and values of attention."""
    names = [track.at.path, *(at.path for at in track.also)]
    return any("past" in name or "cache" in name or "key_values" in name for name in names)


def _wanted(track: Track) -> tuple[str, ...]:
    if track.first.phase == "generate":
        if track.events and is_in_cache(track):
            # How long the cache is, the call says.
            return ()
        # A size that grows with every step is owned by the move; prompts of many lengths by what tokenizes them.
        return ("move", "tokenize") if track.grows and track.detail != "cache" else ("tokenize",)
    return (*(BATCH_ROLES if is_batch_dim(track) else LENGTH_ROLES), "move")


def _owners(events: Sequence[Compile], at: Position) -> dict[str, Counter[Site]]:
    """Count the lines by role; of the moves those of the input in question."""
    found: dict[str, Counter[Site]] = {}
    for event in events:
        for owner in event.owners:
            if not owner.path or owner.path == at.path:
                found.setdefault(owner.role, Counter())[owner.site] += 1
    if "tokenize" in found and not _is_tokenizers(events, at):
        found.pop("tokenize")
    return found


def _is_tokenizers(events: Sequence[Compile], at: Position) -> bool:
    """Whether the size goes with the length that a tokenizer gave: it is as much longer, mostly by the same."""
    more: Counter[int] = Counter()
    for event in events:
        value = value_at(event, at)
        lengths = {owner.size for owner in event.owners if owner.role == "tokenize" and owner.path in ("", at.path)}
        if isinstance(value, int) and len(lengths) == 1:
            more[value - lengths.pop()] += 1
    if not more:
        return False
    offset, times = more.most_common(1)[0]
    return 2 * times > more.total() and (times > 1 or offset == 0)


def _common(sites: Iterable[Site | None]) -> Site | None:
    counted = Counter(site for site in sites if site is not None)
    return counted.most_common(1)[0][0] if counted else None
