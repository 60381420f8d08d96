"""Give eager operators that compile again their reason: a region's, if it is the same one, or one of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shapeguard.runs.families import Family, families
from shapeguard.runs.growth import by_root, is_root
from shapeguard.runs.series import Value, whole
from shapeguard.runs.tracks import Track
from shapeguard.runs.values import Compile, Process


def eager_tracks(process: Process, regions: Sequence[Track]) -> tuple[list[Track], list[Family]]:
    """Give the eager operators' own tracks; what a region's track explains is added to that one."""
    found = families(process.compiles)
    rest = [family for family in found if not _joined(family, regions)]
    groups: list[list[Family]] = []
    for family in sorted(rest, key=lambda family: (-len(family.events), _rank(family), family.events[1].n)):
        home = next((group for group in groups if _belongs(family, group[0])), None)
        if home is None:
            groups.append([family])
        else:
            home.append(family)
    groups = by_root(groups)
    share = _again(process.compiles, found)
    tracks = [_track(group) for group in groups if _matters(group, process.warmup_steps) and _is_again(group, share)]
    tracks.sort(key=lambda track: track.first.n)
    _take_the_rest(process.compiles, [*regions, *tracks])
    return tracks, found


def _take_the_rest(compiles: Iterable[Compile], tracks: Sequence[Track]) -> None:
    """Count what came again at a step with a new size to that size: slices and layouts that follow it have no one size.

    Only where a single track has a new value at the step, and only calls that were seen at an earlier step.
    """
    taken = {event.n for track in tracks for event in track.eager}
    by_step: dict[int, list[Track]] = {}
    for track in tracks:
        if track.kind == "shape" and not track.grows:
            for step in {event.step for event in (*track.events, *track.eager)}:
                by_step.setdefault(step, []).append(track)
    if not by_step:
        return
    first: dict[object, int] = {}
    for compile in compiles:
        if compile.is_eager:
            call = (compile.name, compile.file_line, compile.instance, len(compile.inputs))
            began = first.setdefault(call, compile.step)
            owners = by_step.get(compile.step, ())
            if compile.n not in taken and began < compile.step and len(owners) == 1:
                owners[0].eager.append(compile)


def _joined(family: Family, regions: Sequence[Track]) -> bool:
    steps = family.steps
    for track in regions:
        is_after_limit = track.kind == "limit" and min(steps) >= track.first.step
        same_size = track.kind == "shape" and _is_same_size(family.values, track.values)
        # The steps of its regions, not of what was added to it: one growing cause must not take in all that follows.
        if is_after_limit or same_size or steps <= {event.step for event in track.events}:
            track.eager += family.events[1:]
            return True
    return False


def _belongs(family: Family, lead: Family) -> bool:
    line, here = family.events[1].file_line, lead.events[1].file_line
    if family.grows and lead.grows and line == here and family.at.kind == lead.at.kind:
        return family.of_cache == lead.of_cache
    if (
        family.grows == 0
        and family.at.kind == lead.at.kind == "shape"
        and family.steps == lead.steps
        and set(family.seen) == set(lead.seen)
    ):
        return True
    is_part = len(family.seen) > 1 and len(lead.seen) > 2 and family.seen.keys() <= lead.seen.keys()
    if is_part and line == here and not family.grows and not lead.grows:
        # What `generate()` does before its first forward still counts with the step before.
        return True
    # Operators of a backward may have no line: autograd calls them from a thread of its own.
    if line not in (here, ("", 0)) and here != ("", 0):
        return False
    if not family.steps <= lead.steps and set(family.seen) != set(lead.seen):
        return False
    if family.grows and lead.grows:
        return family.of_cache == lead.of_cache
    # Something compiles at every step of what grows: what comes at a few of them has a reason of its own.
    is_seldom = bool(family.seen.keys() - lead.seen.keys()) or 2 * len(family.seen) < len(lead.seen)
    if lead.grows and not family.grows and is_seldom and whole(family.values) is not None:
        return False
    # A rate that changes each step is a reason of its own; a size that a constant repeats is not.
    return family.at.kind == lead.at.kind or (family.at.kind == "value" and whole(family.values) is not None)


def _rank(family: Family) -> int:
    """Prefer what a reader knows: the `cat` that grows, then sizes of inputs, then constants."""
    if family.op.startswith("cat"):
        return 0
    return 1 if family.at.kind == "shape" else 2


def _is_same_size(mine: Sequence[Value], theirs: Sequence[Value]) -> bool:
    """Whether the values are the same, or all one off: labels are shifted by one."""
    if set(mine) == set(theirs):
        return True
    numbers, others = whole(mine), whole(theirs)
    if numbers is None or others is None:
        return False
    if len(numbers) > 1 and {number + 1 for number in numbers} <= set(others):
        return True
    if len(numbers) != len(others):
        return False
    offsets = {a - b for a, b in zip(numbers, others, strict=True)}
    return len(offsets) == 1 and abs(offsets.pop()) == 1


Share = dict[tuple[tuple[str, int], int], float]


def _again(compiles: Sequence[Compile], found: Sequence[Family]) -> Share:
    """Give, by line and step, which share of the keys that came there are known calls with another size."""
    known = {event.n for family in found for event in family.events[1:]}
    counts: dict[tuple[tuple[str, int], int], list[int]] = {}
    for compile in compiles:
        if compile.is_eager:
            count = counts.setdefault((compile.file_line, compile.step), [0, 0])
            count[0] += 1
            count[1] += compile.n in known
    return {place: again / whole for place, (whole, again) in counts.items()}


def _is_again(group: Sequence[Family], share: Share) -> bool:
    """Two parts of a model (a tower for pictures, one for text) have operators in common, but few.

    Where a program compiles again, most of what comes at that step came before in another size.
    """
    return any(share[event.file_line, event.step] >= 0.5 for family in group for event in family.events[1:])


def _matters(group: Sequence[Family], warmup_steps: int) -> bool:
    """Two signatures that both came during warm-up are what prefill and decode, or train and eval, need."""
    if any(len(family.values) > 2 for family in group):
        return True
    return any(event.phase_step > warmup_steps for family in group for event in family.events[1:])


def _track(group: Sequence[Family]) -> Track:
    lead = group[0]
    eager = [event for family in group for event in family.events[1:]]
    eager.sort(key=lambda event: event.n)
    return Track(
        kind=lead.at.kind,
        at=lead.at,
        values=lead.values,
        eager=eager,
        site=lead.events[1].site if is_root(lead) else None,
        is_cat=is_root(lead),
        grows=lead.grows,
        detail="cache" if lead.of_cache else "",
    )


def growing(found: Iterable[Family]) -> dict[str, Family]:
    """Give, by operator, the family that grows the most."""
    most: dict[str, Family] = {}
    for family in found:
        if family.grows and (family.op not in most or len(family.events) > len(most[family.op].events)):
            most[family.op] = family
    return most
