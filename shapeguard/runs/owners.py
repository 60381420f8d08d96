"""Find the line that a user has to change: the one that owns the shape, not the one that met it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shapeguard.runs.tracks import Track
from shapeguard.runs.values import Batch, Compile, Site

BATCH_ROLES = ("loader", "collate")
LENGTH_ROLES = ("collate", "tokenize", "loader")
_ENOUGH = 20
"""Batches of one size that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cause is mended, and how that is known."""

    site: Site | None
    role: str = ""
    """The owner's role; empty where it is the line that met the shape."""
    roles: frozenset[str] = field(default_factory=frozenset)
    """All roles that were seen."""
    last_batch: bool = False
    """The sizes after the first came with the last, short batch of a loader."""


class Batches:
    """The batches of a process, by the sizes in them."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._by_size: dict[tuple[int, int | str], list[Batch]] = {}
        for batch in batches:
            for place in {(dim, size) for _, shape in batch.shapes for dim, size in enumerate(shape)}:
                found = self._by_size.setdefault(place, [])
                if len(found) < _ENOUGH:
                    found.append(batch)

    def matching(self, track: Track) -> list[Batch]:
        """Give batches that brought the later values; none unless every value was brought by one."""
        if track.at.dim is None:
            return []
        hits = [self._by_size.get((track.at.dim, value), []) for value in track.values[1:]]
        return [batch for found in hits for batch in found] if all(hits) else []


def place(track: Track, batches: Batches) -> Place:
    """Give the line that owns a track's change."""
    events = track.events or track.eager
    own = _common(event.site for event in events) or _common(event.code for event in events)
    if track.kind != "shape":
        return Place(site=own)
    owners = _owners(events)
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
    )


def is_batch_dim(track: Track) -> bool:
    """Whether the change runs through the first dimension of an input."""
    return track.kind == "shape" and track.at.dim == 0


def _wanted(track: Track) -> tuple[str, ...]:
    if track.first.phase == "generate":
        # A size that grows with every step is owned by the move; prompts of many lengths by what tokenizes them.
        return ("move", "tokenize") if track.grows and track.detail != "cache" else ("tokenize",)
    return BATCH_ROLES if is_batch_dim(track) else LENGTH_ROLES


def _owners(events: Sequence[Compile]) -> dict[str, Counter[Site]]:
    found: dict[str, Counter[Site]] = {}
    for event in events:
        for owner in event.owners:
            found.setdefault(owner.role, Counter())[owner.site] += 1
    return found


def _common(sites: Iterable[Site | None]) -> Site | None:
    counted = Counter(site for site in sites if site is not None)
    return counted.most_common(1)[0][0] if counted else None
