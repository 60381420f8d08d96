"""Count what a process compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shapeguard.core.events import REGION_KINDS, Outcome
from shapeguard.runs.values import Compile, Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Figures of one rank; regions and eager operators are never added up."""

    regions: int = 0
    aot_graphs: dict[str, int] = field(default_factory=dict)
    neffs: int = 0
    eager: int = 0
    collective: int = 0
    late_regions: int = 0
    """Regions after warm-up."""
    late_eager: int = 0
    disk: int = 0
    fallback_ops: int = 0
    limits: int = 0
    """Code objects that reached Dynamo's recompile limit."""
    failed: int = 0
    unsure_neffs: int = 0
    """Compiled programs, and eager keys below, whose count rests on a guess about Neuron (±)."""
    unsure_eager: int = 0

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        return {
            "regions": self.regions,
            "aot_graphs": {kind: self.aot_graphs.get(kind, 0) for kind in REGION_KINDS},
            "neffs": self.neffs,
            "eager": self.eager,
            "collective": self.collective,
            "after_warmup": {"regions": self.late_regions, "eager": self.late_eager},
            "disk": self.disk,
            "fallback_ops": self.fallback_ops,
            "limits": self.limits,
            "failed": self.failed,
            "unsure": {"neffs": self.unsure_neffs, "eager": self.unsure_eager},
        }


def count(processes: Iterable[Process]) -> Totals:
    """Count the processes of one rank together."""
    processes = list(processes)
    compiles = [compile for process in processes for compile in process.compiles]
    graphs = [compile for compile in compiles if compile.is_graph]
    eager = [compile for compile in compiles if compile.is_eager]
    return Totals(
        regions=sum(compile.is_region for compile in compiles),
        aot_graphs={kind: sum(graph.kind == kind for graph in graphs) for kind in REGION_KINDS},
        neffs=len({graph.key for graph in graphs}),
        eager=len({compile.key for compile in eager}),
        collective=len({compile.key for compile in compiles if compile.kind == "collective"}),
        late_regions=sum(len(late(process, regions=True)) for process in processes),
        late_eager=len({compile.key for process in processes for compile in late(process, regions=False)}),
        disk=sum(compile.outcome == Outcome.DISK for compile in compiles),
        fallback_ops=len({op for process in processes for op in process.fallbacks}),
        limits=len({compile.code for compile in compiles if compile.outcome == Outcome.LIMIT}),
        failed=sum(compile.outcome == Outcome.FAILED for compile in compiles),
        unsure_neffs=len({graph.key for graph in graphs if graph.certainty}),
        unsure_eager=len({compile.key for compile in eager if compile.certainty}),
    )


def late(process: Process, *, regions: bool) -> list[Compile]:
    """Give the regions, or the eager keys, that came after the warm-up of their phase."""
    return [
        compile
        for compile in process.compiles
        if (compile.is_region if regions else compile.is_eager) and compile.phase_step > process.warmup_steps
    ]


def most(ranks: Sequence[Totals]) -> Totals:
    """Give each figure of the rank that has most of it: ranks that are equal compile the same graphs once each."""
    if not ranks:
        return Totals(aot_graphs=dict.fromkeys(REGION_KINDS, 0))
    names = [name for name in Totals.__slots__ if name != "aot_graphs"]
    graphs = {kind: max(rank.aot_graphs.get(kind, 0) for rank in ranks) for kind in REGION_KINDS}
    return Totals(aot_graphs=graphs, **{name: max(getattr(rank, name) for rank in ranks) for name in names})
