"""Graph breaks as causes: a line that cuts a region in two costs one region more, and more where values follow it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from shapeguard.runs.compare import Position
from shapeguard.runs.tracks import Label, Track
from shapeguard.runs.values import Break, Compile, Site

_PIECE = re.compile(r"torch_dynamo_resume_in_\w+?_at_(\d+)")
_HIDDEN = re.compile(r" == …$")
_STACK = "___stack"
"""How Dynamo names what the line of the break gave."""

READ, SHAPE, OTHER = "read", "shape", "other"
_KINDS = {
    READ: ("item", "tolist", "data-dependent branching", "data dependent", "generic_jump", "numpy"),
    SHAPE: ("dynamic shape", "dynamic-shape", "dynamic slicing", "unbacked"),
}


def kind_of(reason: str) -> str:
    """Say what breaks the graph: a value that is read, a shape that depends on values, or something else."""
    text = reason.lower()
    return next((kind for kind, words in _KINDS.items() if any(word in text for word in words)), OTHER)


def broken(
    tracks: Sequence[Track], regions: Iterable[Compile], breaks: Sequence[Break], labels: dict[int, Label]
) -> list[Track]:
    """Give the tracks with those of pieces turned into the breaks that made them."""
    if not breaks:
        return list(tracks)
    found: dict[Site, Track] = {}
    pieces = _pieces(regions, breaks)
    taken: set[int] = set()
    for group, origin in pieces:
        track = found.setdefault(origin.site, _track(origin))
        for index, region in enumerate(group):
            if index == 0 or _is_read(region):
                track.events.append(region)
                taken.add(region.n)
                labels[region.region] = Label(kind="break", text=f"a piece after the break at {origin.site}")
    kept = [track for track in tracks if not _goes(track, pieces, found, taken)]
    for each in breaks:
        if each.is_loop:
            found.setdefault(each.site, _track(each))
    broken = [track for track in found.values() if track.events or track.detail.startswith("loop")]
    return [*kept, *broken]


def _track(origin: Break) -> Track:
    detail = f"{'loop' if origin.is_loop else 'cut'}: {origin.reason}"
    return Track(kind="break", at=Position("break", str(origin.site)), detail=detail, origin=origin)


def _pieces(regions: Iterable[Compile], breaks: Sequence[Break]) -> list[tuple[list[Compile], Break]]:
    """Give the regions of every code object that begins where another was cut, with the break."""
    places: dict[tuple[str, int], Break] = {}
    for each in breaks:
        places.setdefault((each.file, each.resumes), each)
    groups: dict[object, tuple[list[Compile], Break]] = {}
    for region in regions:
        match = _PIECE.fullmatch(region.code.function) if region.code and region.is_region else None
        origin = places.get((region.code.file, int(match[1]))) if match and region.code else None
        if origin is not None:
            groups.setdefault((region.code, region.instance), ([], origin))[0].append(region)
    return list(groups.values())


def _is_read(region: Compile) -> bool:
    """Whether only a value that was read from a tensor made it another graph."""
    return bool(_HIDDEN.search(region.guard))


def _goes(
    track: Track,
    pieces: Sequence[tuple[list[Compile], Break]],
    found: Mapping[Site, Track],
    taken: set[int],
) -> bool:
    """Move what a break brought from a track to the break; gives whether nothing is left of the track."""
    owners = {region.n: origin for group, origin in pieces for region in group}
    if not track.events or any(event.n not in owners for event in track.events):
        return False
    if track.at.path.startswith(_STACK) or (track.kind == "guard" and "…" in track.detail):
        for event in track.events:
            if event.n not in taken:
                found[owners[event.n].site].events.append(event)
                taken.add(event.n)
        return True
    return all(event.n in taken for event in track.events) and track.kind in ("guard", "value")
