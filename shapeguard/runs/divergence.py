"""Compare ranks: the first step at which they compile different graphs, and where they differ as they should.

Steps are compared by phase and number in the phase, since one rank may evaluate or generate by itself. A graph counts
as missing on a rank that did not have it until then, so that the order of first uses does not matter. What a rank that
broke off did not come to do in its last step is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shapeguard.core.events import Outcome
from shapeguard.runs.ranks import Difference, Divergence, Expected, Shapes, shape_text
from shapeguard.runs.values import Compile, Owner, Process, Site

Moment = tuple[str, int]
"""Phase, and number of the step in it."""
_SHOWN = 4
_ROOTED = ("scatter", "gather")
"""One rank has the whole, the others a part: their arguments differ as they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something a rank compiles, as far as it must be equal on all ranks."""

    kind: str
    where: str
    """Code object, model, or operator with its line and group: what has a counterpart on other ranks."""
    shapes: Shapes
    detail: object
    step: int
    site: Site | None
    owner: Site | None
    graphs: tuple[Compile, ...] = field(default=(), compare=False)

    @property
    def signature(self) -> object:
        """Give what is equal on ranks that compile the same."""
        return self.kind, self.where, self.shapes, self.detail


@dataclass(slots=True, kw_only=True)
class Rank:
    """What one rank did, by moment."""

    number: int
    items: dict[Moment, list[Item]]
    last: dict[str, int]
    """Steps it did of each phase."""
    broke_off: bool


def compare(ranks: Mapping[int, Iterable[Process]]) -> tuple[Divergence | None, tuple[Expected, ...]]:
    """Give the first divergence of a run, and its expected differences."""
    found = [rank for rank in (_rank(number, processes) for number, processes in ranks.items()) if rank is not None]
    if len(found) < 2:
        return None, ()
    known: dict[int, dict[object, Item]] = {rank.number: {} for rank in found}
    for moment in _moments(found):
        for rank in found:
            for item in rank.items.get(moment, ()):
                known[rank.number].setdefault(item.signature, item)
        divergence = _at(moment, found, known)
        if divergence:
            return divergence, _expected(known)
    return None, (*_expected(known), *_alone(found))


def _rank(number: int, processes: Iterable[Process]) -> Rank | None:
    # A launcher and a loader's workers count with the rank that they inherit, and do no steps.
    working = [process for process in processes if process.compiles or process.forwards or process.num_steps]
    if not working:
        return None
    items: dict[Moment, list[Item]] = {}
    last: dict[str, int] = {}
    for process in working:
        for moment, item in _items(process):
            items.setdefault(moment, []).append(item)
        for phase, count in process.phases.items():
            last[phase] = max(last.get(phase, 0), count)
    broke_off = any(process.end not in ("ok", "steps") for process in working)
    return Rank(number=number, items=items, last=last, broke_off=broke_off)


def _items(process: Process) -> Iterator[tuple[Moment, Item]]:
    graphs: dict[int, list[Compile]] = {}
    for compile in process.compiles:
        if compile.is_graph:
            graphs.setdefault(compile.region, []).append(compile)
    for compile in process.compiles:
        moment = (compile.phase, compile.phase_step)
        if compile.is_region:
            yield moment, _region(compile, graphs.get(compile.region, []))
        elif compile.kind == "collective" and compile.outcome != Outcome.FAILED and compile.name not in _ROOTED:
            yield moment, _collective(compile)
    for forward in process.forwards:
        item = Item(
            kind="forward",
            where=forward.model,
            shapes=forward.shapes,
            detail="",
            step=forward.step,
            site=forward.site,
            owner=_owner(forward.owners),
        )
        yield (forward.phase, forward.phase_step), item


def _region(region: Compile, graphs: Sequence[Compile]) -> Item:
    return Item(
        kind="region",
        where=str(region.code or region.site or ""),
        shapes=tuple((row.path, row.shape) for row in region.inputs),
        # Backward graphs come with the first backward, which may be a step later on one rank.
        detail=(tuple(row.dtype for row in region.inputs), region.modes),
        step=region.step,
        site=region.site or region.code,
        owner=_owner(region.owners),
        graphs=tuple(graphs),
    )


def _collective(compile: Compile) -> Item:
    constants = dict(compile.constants)
    return Item(
        kind="collective",
        where=f"{compile.name} {compile.site or ''} {constants.get('replica_groups', '')}",
        shapes=tuple((f"{compile.name}[{row.path}]", row.shape) for row in compile.inputs),
        detail=(tuple(row.dtype for row in compile.inputs), compile.constants),
        step=compile.step,
        site=compile.site,
        owner=None,
    )


def _owner(owners: Iterable[Owner]) -> Site | None:
    return next((owner.site for owner in owners if owner.role in ("collate", "loader")), None)


def _moments(ranks: Sequence[Rank]) -> list[Moment]:
    """Give the moments that all ranks had, in the order of the run."""
    phases = set.intersection(*({*rank.last, *(phase for phase, step in rank.items if not step)} for rank in ranks))
    ends = {phase: min(rank.last.get(phase, 0) for rank in ranks) for phase in phases}
    steps: dict[Moment, int] = {}
    for rank in ranks:
        for moment, items in rank.items.items():
            if moment[0] in ends and moment[1] <= ends[moment[0]]:
                steps[moment] = min(steps.get(moment, items[0].step), items[0].step)
    return sorted(steps, key=lambda moment: (steps[moment], moment))


def _at(moment: Moment, ranks: Sequence[Rank], known: Mapping[int, Mapping[object, Item]]) -> Divergence | None:
    for kind, differs in (("region", _lacks), ("forward", _lacks), ("collective", _other)):
        for rank in ranks:
            for item in rank.items.get(moment, ()):
                if item.kind == kind and any(
                    differs(item, moment, other, known[other.number]) for other in ranks if other is not rank
                ):
                    return _divergence(kind, moment, item, ranks, known)
    return _exchanges(moment, ranks, known)


def _lacks(item: Item, moment: Moment, other: Rank, known: Mapping[object, Item]) -> bool:
    """Tell whether the other rank never had what this one compiles."""
    if item.signature in known:
        return False
    is_its_last = other.broke_off and moment[1] >= other.last.get(moment[0], 0)
    return not is_its_last or any(
        own.kind == item.kind and own.where == item.where for own in other.items.get(moment, ())
    )


def _other(item: Item, moment: Moment, other: Rank, known: Mapping[object, Item]) -> bool:
    """Tell whether the other rank's collective at the same line has other shapes; one that it lacks may be a part's."""
    if item.signature in known:
        return False
    return any(own.kind == item.kind and own.where == item.where for own in other.items.get(moment, ()))


def _divergence(
    kind: str, moment: Moment, item: Item, ranks: Sequence[Rank], known: Mapping[int, Mapping[object, Item]]
) -> Divergence:
    """Give for each rank what it has in the place of the item that differs."""
    here = {rank.number: _counterpart(item, rank, moment, known, differs=True) for rank in ranks}
    there = {rank.number: here[rank.number] or _counterpart(item, rank, moment, known, differs=False) for rank in ranks}
    paths = _differing([found.shapes for found in there.values() if found])
    rows = []
    for number, found in sorted(there.items()):
        own = here[number]
        shapes = tuple(
            f"{path} {shape_text(shape)}" for path, shape in (found.shapes if found else ()) if path in paths
        )
        rows.append(
            Difference(
                rank=number,
                kind=kind if own or found else "",
                shapes=shapes[:_SHOWN],
                site=(own or found or item).site if own or found else None,
                owner=own.owner if own else None,
            )
        )
    return Divergence(step=item.step, phase=moment[0], kind=kind, ranks=tuple(rows))


def _counterpart(
    item: Item, rank: Rank, moment: Moment, known: Mapping[int, Mapping[object, Item]], *, differs: bool
) -> Item | None:
    """Give a rank's item of the same place: a new one of this moment that not all have, else the last it had."""
    alike = [own for own in rank.items.get(moment, ()) if own.kind == item.kind and own.where == item.where]
    if differs:
        return next((own for own in alike if not all(own.signature in each for each in known.values())), None)
    had = [own for own in known[rank.number].values() if own.kind == item.kind and own.where == item.where]
    return had[-1] if had else None


def _differing(shapes: Sequence[Shapes]) -> set[str]:
    """Name the inputs that are not equal everywhere; all of them where none differs."""
    seen: dict[str, set[tuple[int, ...]]] = {}
    for row in shapes:
        for path, shape in row:
            seen.setdefault(path, set()).add(shape)
    return {path for path, found in seen.items() if len(found) > 1} or set(seen)


def _exchanges(moment: Moment, ranks: Sequence[Rank], known: Mapping[int, Mapping[object, Item]]) -> Divergence | None:
    """Find graphs of equal inputs whose collectives differ."""
    for rank in ranks:
        for item in rank.items.get(moment, ()):
            same = {number: found[item.signature] for number, found in known.items() if item.signature in found}
            if item.kind == "region" and len({_exchange(own) for own in same.values()}) > 1:
                rows = [
                    Difference(rank=number, kind="exchange", shapes=(), site=own.site)
                    for number, own in sorted(same.items())
                ]
                return Divergence(step=item.step, phase=moment[0], kind="exchange", ranks=tuple(rows))
    return None


def _exchange(item: Item) -> str:
    return "".join(graph.exchange for graph in item.graphs if graph.kind != "backward")


def _expected(known: Mapping[int, Mapping[object, Item]]) -> tuple[Expected, ...]:
    """Count graphs of equal inputs that differ by constants, or by the sizes of what they hold."""
    numbers = tuple(sorted(known))
    found: dict[str, list[Site | None]] = {}
    for signature, item in known[numbers[0]].items():
        rows = [known[number][signature].graphs for number in numbers if signature in known[number]]
        if item.kind != "region" or len(rows) < len(numbers):
            continue
        for graphs in zip(*rows, strict=False):
            if len({graph.key for graph in graphs}) > 1 and all(graph.outline for graph in graphs):
                kind = "constants" if len({graph.outline for graph in graphs}) == 1 else "sizes"
                found.setdefault(kind, []).append(item.site)
    return tuple(
        Expected(kind=kind, graphs=len(sites), ranks=numbers, site=sites[0]) for kind, sites in sorted(found.items())
    )


def _alone(ranks: Sequence[Rank]) -> Iterator[Expected]:
    """Find phases that only some ranks have: rank 0 that evaluates or generates by itself."""
    for phase in sorted({phase for rank in ranks for phase in rank.last}):
        having = [rank for rank in ranks if phase in rank.last]
        items = [item for moment, found in having[0].items.items() if moment[0] == phase for item in found]
        regions = [item for item in items if item.kind == "region"]
        if regions and len(having) < len(ranks):
            graphs = sum(len(item.graphs) for item in regions)
            numbers = tuple(rank.number for rank in having)
            yield Expected(kind="alone", graphs=graphs, ranks=numbers, site=regions[0].site)
