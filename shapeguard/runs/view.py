"""A summary as the sections of a report: the verdict first, what nothing else matters beside before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.graphs import GraphRecord
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.runs import tables
from shapeguard.runs.cost import Costs, estimate
from shapeguard.runs.evidence import basis
from shapeguard.runs.join import findings_of, named
from shapeguard.runs.marks import marks
from shapeguard.runs.summary import Summary, Trouble, document
from shapeguard.runs.tables import views
from shapeguard.runs.values import Placement

SIMULATED = "Simulated: counted on this machine after what is known of TorchNeuron, never run on Trainium."
UNSURE = "±: rests on a guess about Neuron; docs/fidelity.md says on which."


def report(
    summary: Summary,
    *,
    folder: str,
    by: str = "cause",
    records: Sequence[GraphRecord] = (),
    root: Path | None = None,
) -> Report:
    """Give the report of a run for people and for other programs.

    `records` tell what compiles cost before; `root` is the folder in which the user's files are looked for.
    """
    costs = estimate(summary.graphs, records)
    summary = replace(summary, causes=named(summary.causes, findings_of(summary, root))) if root else summary
    sections: list[Text | Table] = [*_first(summary)]
    if summary.graphs or summary.operators:
        sections.append(Text(text=_figures(summary)))
    sections += views(summary, by)
    sections += [Text(text=str(row)) for row in summary.expected]
    if isinstance(world := summary.device.get("world"), dict):
        sections.append(Text(text=_world(world, summary)))
    if summary.tokens[1]:
        sections.append(Text(text=_padding(summary.tokens)))
    if summary.graphs:
        sections.append(Text(text=str(costs)))
    if summary.device.get("kind") in ("real", "imported"):
        sections.append(Text(text=basis(summary.device)))
    else:
        is_unsure = summary.totals.unsure_neffs or summary.totals.unsure_eager
        sections.append(Text(text=f"{SIMULATED} {UNSURE}" if is_unsure else SIMULATED))
    sections.append(Text(text=f"run: {folder}"))
    return Report(
        tool="trace",
        sections=tuple(sections),
        problems=tuple(_problem(trouble, folder) for trouble in summary.troubles),
        annotations=marks(summary.causes),
        document=_Late(lambda: cast(Mapping[str, JSON], document(summary))),
        page=_Late(lambda: _page(summary, costs)),
        exit_code=Exit.CLEAN,
    )


class _Late(Mapping[str, JSON]):
    """A document that is made when a format first looks at it: the terminal never does, and it may be large."""

    def __init__(self, make: Callable[[], Mapping[str, JSON]]) -> None:
        self._made = cache(make)

    def __getitem__(self, name: str) -> JSON:
        return self._made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())


def _page(summary: Summary, costs: Costs) -> Mapping[str, JSON]:
    """Give `summary.json` with what a page shows beside it: words, operators, when it compiled, what it costs."""
    body = document(summary)
    body["timeline"] = summary.timeline.plain()
    body["causes"] = [
        {**cause.plain(), "what": tables.what(cause), "cost": tables.cost(cause)} for cause in summary.causes
    ]
    body["compile_cost"] = costs.plain()
    body["batch_shapes"] = {
        name: [{"shape": list(shape), "batches": times} for shape, times in shapes.items()]
        for name, shapes in summary.batch_shapes.items()
    }
    several = len(summary.ranks) > 1
    body["graphs"] = [
        {
            **graph.plain(ranks=several),
            "shown": [row.plain() for row in graph.shown],
            "operators": dict(graph.operators),
            "cost": costs.text(graph.key),
        }
        for graph in summary.graphs
    ]
    return cast(Mapping[str, JSON], body)


def _first(summary: Summary) -> Iterable[Text]:
    for row in summary.placements:
        yield Text(text=_placement(row), strong=True)
    if summary.divergence:
        yield Text(text=str(summary.divergence), strong=True)
    yield Text(text=summary.steadiness.verdict, strong=True)
    if summary.ended.signal:
        yield Text(text=f"the program was ended by {summary.ended.signal}: this is what was seen until then")
    elif summary.ended.exit_code:
        yield Text(text=f"the program ended with exit code {summary.ended.exit_code}: this is what was seen until then")


def _placement(row: Placement) -> str:
    model = row.model or "the model"
    where = f"; loaded so at {row.loaded}" if row.loaded else f"; its forward ran at {row.site}" if row.site else ""
    how = f" ({row.how})" if row.how and row.how != "default" else ""
    return f"{model} ran on the CPU: nothing of it would run on Neuron{how}{where}"


def _figures(summary: Summary) -> str:
    totals = summary.totals
    graphs = ", ".join(f"{num} {kind}" for kind, num in totals.aot_graphs.items() if num)
    neffs = f", {totals.neffs} to compile" if totals.neffs != sum(totals.aot_graphs.values()) else ""
    neffs += f", {totals.unsure_neffs} of them ±" if totals.unsure_neffs else ""
    parts = [f"regions {totals.regions}" + (f" ({graphs}{neffs})" if graphs else "")]
    parts.append(f"eager signatures {totals.eager}" + (f" ({totals.unsure_eager} ±)" if totals.unsure_eager else ""))
    if totals.collective:
        parts.append(f"collectives {totals.collective}")
    if totals.disk:
        parts.append(f"found on disk {totals.disk}")
    if len(summary.ranks) > 1:
        parts.append(f"each figure of the largest of {len(summary.ranks)} ranks")
    return ", ".join(parts)


def _world(world: Mapping[str, object], summary: Summary) -> str:
    ran = ", ".join(map(str, summary.ranks))
    name = "ranks" if len(summary.ranks) > 1 else "rank"
    size = summary.device.get("world_size")
    return (
        f"simulated world {world.get('sizes')} of {size} ranks: {name} {ran} ran, what others sent is taken to be equal"
    )


def _padding(tokens: tuple[int, int]) -> str:
    real, padded = tokens
    whole = real + padded
    return f"padding: {padded / whole:.0%} of {whole} tokens"


def _problem(trouble: Trouble, folder: str) -> Problem:
    times = f" ({trouble.times} times)" if trouble.times > 1 else ""
    path, line = (trouble.site.file, trouble.site.line) if trouble.site else (folder, 0)
    return Problem(path=path, message=trouble.message + times, line=line)
