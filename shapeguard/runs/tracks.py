"""Follow each code object through a run: what changed from region to region, and which changes belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapeguard.core.events import Outcome
from shapeguard.runs.compare import ALWAYS_GUARDED, Change, Position, changes, nearest, value_at
from shapeguard.runs.guards import from_guard, is_another_object
from shapeguard.runs.values import DYNAMIC, Break, Compile, Site

Value = int | str
Modes = tuple[tuple[str, str], ...]
_WRAPPER = "_dynamo/external_utils.py"


@dataclass(slots=True, kw_only=True)
class Track:
    """One reason for compiles in one process: a position that changed, and those that changed with it."""

    kind: str
    """The cause's class."""
    at: Position
    also: list[Position] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    """Distinct, in the order seen, from the first region on."""
    events: list[Compile] = field(default_factory=list)
    """The compiles that this change brought, without the first."""
    eager: list[Compile] = field(default_factory=list)
    """Eager operators that compiled for the same reason."""
    grows: int = 0
    """By how much it grows each step of eager operators, over several calls too; 0 where it doesn't."""
    detail: str = ""
    """A guard's text, where nothing else is known; "cache" where the size runs through keys and values."""
    site: Site | None = None
    """The user's line that all of it comes from, where its compiles stand on several."""
    is_cat: bool = False
    """Whether that line lengthens it with `cat`."""
    origin: Break | None = None
    """The break that it stands for."""

    @property
    def steps(self) -> frozenset[int]:
        """Give the steps at which it compiled."""
        return frozenset(event.step for event in (*self.events, *self.eager))

    @property
    def first(self) -> Compile:
        """Give the compile that it first brought."""
        return (self.events or self.eager)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Why one region was compiled."""

    kind: str
    text: str = ""


@dataclass(slots=True)
class Followed:
    """The tracks of a process, and the label of each of its regions by the region's number."""

    tracks: list[Track] = field(default_factory=list)
    labels: dict[int, Label] = field(default_factory=dict)


def follow(compiles: Iterable[Compile]) -> Followed:
    """Give the tracks of one process, in the order in which they began."""
    found = Followed()
    for regions in _by_code(compiles).values():
        seen = [region for region in regions if region.is_region]
        tracks = _tracks(seen, found.labels)
        late = [region for region in regions if region.outcome == Outcome.LIMIT]
        found.tracks += [*tracks, *_refused(regions)]
        if late:
            found.labels.update({region.region: Label(kind="limit") for region in late})
            found.tracks.append(_limit(late, seen))
    found.tracks = _merge_pieces(sorted(found.tracks, key=lambda track: track.first.n))
    return found


def _by_code(compiles: Iterable[Compile]) -> dict[tuple[object, ...], list[Compile]]:
    groups: dict[tuple[object, ...], list[Compile]] = {}
    for compile in compiles:
        if compile.kind == "region":
            # Dynamo compiles every whole module in one wrapper of its own; there only the model tells them apart.
            wrapper = compile.code is not None and compile.code.file.endswith(_WRAPPER)
            model = compile.model if wrapper else ""
            groups.setdefault((compile.code or compile.site, compile.instance, model), []).append(compile)
    return groups


def _limit(late: Sequence[Compile], seen: Sequence[Compile]) -> Track:
    limit = max((region.limit for region in late), default=0) or len(seen)
    return Track(kind="limit", at=Position("limit", str(late[0].code or "")), values=[limit], events=list(late))


def _refused(regions: Iterable[Compile]) -> list[Track]:
    """Give the inputs that were marked dynamic, which Neuron refuses."""
    found: dict[Position, Track] = {}
    for region in regions:
        dynamic = ((row.path, dim) for row in region.inputs for dim, size in enumerate(row.shape) if size == DYNAMIC)
        path, dim = next(dynamic, ("", 0))
        if region.outcome == Outcome.FAILED and path:
            at = Position("dynamic", path, dim)
            found.setdefault(at, Track(kind="dynamic", at=at, values=["dynamic"])).events.append(region)
    return list(found.values())


def _tracks(regions: Sequence[Compile], labels: dict[int, Label]) -> list[Track]:
    """Compare every region with the nearest earlier one, then join what always changed together."""
    moved: dict[Position, dict[int, Change]] = {}
    guarded: list[Track] = []
    peers: dict[Modes, list[Compile]] = {}
    for index, region in enumerate(regions):
        found = _differences(region, peers) if index else ()
        peers.setdefault(_guarded(region), []).append(region)
        labels[region.region] = _label(found)
        if index and not found and _is_by_guard(region):
            guarded.append(_by_guard(region))
            labels[region.region] = Label(kind=guarded[-1].kind, text=guarded[-1].detail)
        for change in found:
            moved.setdefault(change.at, {})[index] = change
    return [_track(group, moved, regions) for group in _together(moved)] + _same_guards(guarded)


def _is_by_guard(region: Compile) -> bool:
    return bool(region.guard) and region.outcome != Outcome.SHARED and not is_another_object(region.guard)


def _differences(region: Compile, earlier: Mapping[Modes, Sequence[Compile]]) -> tuple[Change, ...]:
    peers = earlier.get(_guarded(region))
    if not peers:
        # The graph is another one by its mode alone, whatever else differs.
        latest = [regions[-1] for regions in earlier.values()]
        return min((_mode_changes(old, region) for old in reversed(latest)), key=len)
    found = nearest(region, peers)[1]
    if all(_is_parameter(change.at.path) for change in found):
        return ()  # another model of the same class
    found = tuple(change for change in found if not _is_parameter(change.at.path))
    modes = tuple(change for change in found if change.at.kind == "mode")
    if modes and len(modes) < len(found):
        # The training flag only matters where the module looks at it: the guard tells.
        named = any(change.at.path in region.guard for change in modes)
        return modes if named else tuple(change for change in found if change not in modes)
    return found


def _guarded(region: Compile) -> Modes:
    return tuple(item for item in region.modes if item[0] in ALWAYS_GUARDED)


def _mode_changes(old: Compile, new: Compile) -> tuple[Change, ...]:
    return tuple(c for c in changes(old, new) if c.at.kind == "mode" and not c.at.path.startswith("grad of "))


def _is_parameter(path: str) -> bool:
    return path.startswith(("self.", "self[", "L['self']"))


def _label(found: Sequence[Change]) -> Label:
    if not found:
        return Label(kind="first")
    alike: dict[tuple[str, int | str, int | str], list[Change]] = {}
    for change in found:
        alike.setdefault((change.at.kind, change.old, change.new), []).append(change)
    parts = []
    for group in list(alike.values())[:3]:
        others = len({change.at.path for change in group}) - 1
        parts.append(text_of(group[0]) + (f" (and {others} more)" if others else ""))
    return Label(kind=found[0].at.kind, text=", ".join(parts))


def text_of(change: Change) -> str:
    """Give one change in words: `input_ids dim 1: 9 → 13`."""
    dim = f" dim {change.at.dim}" if change.at.dim is not None else ""
    return f"{change.at.path}{dim}: {change.old} → {change.new}"


def _by_guard(region: Compile) -> Track:
    change = from_guard(region.guard)
    values = [value for value in (change.old, change.new) if value != ""]
    return Track(kind=change.at.kind, at=change.at, values=values, events=[region], detail=region.guard)


def _same_guards(tracks: Sequence[Track]) -> list[Track]:
    joined: dict[Position, Track] = {}
    for track in tracks:
        known = joined.setdefault(track.at, track)
        if known is not track:
            known.events += track.events
            known.values += [value for value in track.values if value not in known.values]
    return list(joined.values())


def _together(moved: Mapping[Position, Mapping[int, Change]]) -> list[list[Position]]:
    """Put each position to the one it follows; a position that follows none begins a group."""
    order = sorted(moved, key=lambda at: (-len(moved[at]), _rank(at), min(moved[at]), list(moved).index(at)))
    groups: list[list[Position]] = []
    for at in order:
        home = next((group for group in groups if _follows(at, group[0], moved)), None)
        if home is None:
            groups.append([at])
        else:
            home.append(at)
    return groups


def _follows(at: Position, lead: Position, moved: Mapping[Position, Mapping[int, Change]]) -> bool:
    mine, theirs = moved[at], moved[lead]
    if at.kind != lead.kind and not (lead.kind == "shape" and _derived(at)):
        return False
    if not mine.keys() <= theirs.keys():
        return False
    same = all((c.old, c.new) == (theirs[i].old, theirs[i].new) for i, c in mine.items())
    if same or at.kind != lead.kind or len(mine) < 2 or mine.keys() != theirs.keys():
        return same
    # Rows and their length are two things, though both may change in every batch.
    return (at.dim == 0) == (lead.dim == 0) or _is_derived(
        [pair for i, c in mine.items() for pair in ((theirs[i].old, c.old), (theirs[i].new, c.new))]
    )


def _is_derived(pairs: Iterable[tuple[Value, Value]]) -> bool:
    """Whether one size is the other and a constant more, or a constant times it."""
    numbers = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
    return len({b - a for a, b in numbers}) == 1 or len({b / a for a, b in numbers if a}) == 1


def _derived(at: Position) -> bool:
    """A constant inside an object (`cache.max_cache_len`) follows a shape; an argument of its own does not."""
    return at.kind == "value" and any(mark in at.path for mark in ".[(")


def _rank(at: Position) -> int:
    """Prefer the input a user knows: ids before caches, caches before masks."""
    name = at.path.lower()
    if "mask" in name or "position" in name or "label" in name:
        return 3
    if "past" in name or "cache" in name or "key_values" in name:
        return 2
    return 0 if "input" in name or "ids" in name else 1


def _track(
    group: Sequence[Position], moved: Mapping[Position, Mapping[int, Change]], regions: Sequence[Compile]
) -> Track:
    lead = group[0]
    events = [regions[index] for index in sorted(moved[lead])]
    return Track(kind=lead.kind, at=lead, also=list(group[1:]), values=_values(lead, moved, regions), events=events)


def _values(lead: Position, moved: Mapping[Position, Mapping[int, Change]], regions: Sequence[Compile]) -> list[Value]:
    found: dict[Value, None] = {}
    for index, region in enumerate(regions):
        change = moved[lead].get(index)
        if change is not None:
            found.setdefault(change.old)
            found.setdefault(change.new)
        elif (value := value_at(region, lead)) is not None:
            found.setdefault(value)
    return list(found)


def _merge_pieces(tracks: Sequence[Track]) -> list[Track]:
    """Join the tracks of code objects that are pieces of one: the same values, at the same steps or line."""
    merged: list[Track] = []
    for track in tracks:
        home = next((known for known in merged if _is_piece(track, known)), None)
        if home is None:
            merged.append(track)
        else:
            home.events += track.events
            home.also += [at for at in (track.at, *track.also) if at != home.at and at not in home.also]
    return merged


def _is_piece(track: Track, known: Track) -> bool:
    if track.kind != known.kind or track.kind in ("limit", "guard"):
        return False
    if track.kind == "shape" and set(track.values) != set(known.values):
        # Sizes derived from the same length: other values, the same steps, inside the same call.
        is_same_call = track.steps == known.steps and _line(track) == _line(known)
        return is_same_call and len(track.steps) > 1 and not (_code(track) == _code(known) and _is_rows(track, known))
    if set(track.values) != set(known.values):
        return False
    same_place = _line(track) == _line(known) if track.kind == "shape" else track.at.path == known.at.path
    return same_place or track.steps == known.steps


def _is_rows(track: Track, known: Track) -> bool:
    """Whether one is about the number of rows, the other about their length."""
    return (track.at.dim == 0) != (known.at.dim == 0)


def _code(track: Track) -> Site | None:
    return track.first.code


def _line(track: Track) -> tuple[str, int]:
    return track.first.file_line
