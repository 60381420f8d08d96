"""What a finished run needed, in the words of a lock, and which compile first needed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from shapeguard.core.graphs import EAGER_KINDS
from shapeguard.lock.values import Id, Lock, LockedGraph, LockedJob
from shapeguard.runs.values import DYNAMIC, Compile, Input, Process, Run, Site

MOST_INPUTS = 32
_SHORT = re.compile(r"[\w.+-]{1,40}")
PARAMETERS = ("self.", "self[", "L['self']")
_NO_MODE = ("off", "False", "None", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The compile that first needed something, and its process."""

    compile: Compile
    process: Process
    region: Compile | None = None

    @property
    def site(self) -> Site | None:
        """Give the user's line that needed it; of a backward the line of its forward, which decides it."""
        return (self.region.site if self.region else None) or self.compile.site


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that one job's run needed."""

    job: str
    toolchain: Mapping[str, str]
    graphs: Mapping[Id, LockedGraph]
    eager: Mapping[str, str]
    """Line of each eager signature, by its key."""
    fallbacks: Mapping[str, Site | None]
    firsts: Mapping[str, First] = field(default_factory=dict)
    """By key: of graphs and of eager signatures."""
    late_eager: frozenset[str] = frozenset()
    """Keys of eager signatures that first came after warm-up."""

    def locked(self, settings: LockedJob) -> Lock:
        """Give a lock with this job alone."""
        job = replace(settings, eager=tuple(sorted(self.eager.values())), fallbacks=tuple(sorted(self.fallbacks)))
        return Lock(toolchain=self.toolchain, jobs={self.job: job}, graphs=self.graphs)


def observe(run: Run, job: str) -> Observed:
    """Give what a run needed; the graphs of all ranks together."""
    graphs: dict[Id, LockedGraph] = {}
    eager: dict[str, str] = {}
    firsts: dict[str, First] = {}
    late_eager: set[str] = set()
    for process in run.processes:
        regions = {each.region: each for each in process.compiles if each.kind == "region"}
        seen: set[str] = set()
        for compile in process.compiles:
            if not compile.key or not (compile.is_graph or _is_operator(compile)) or compile.key in seen:
                continue
            seen.add(compile.key)
            is_late = compile.phase_step > process.warmup_steps
            region = regions.get(compile.region) if compile.is_graph else None
            firsts.setdefault(compile.key, First(compile=compile, process=process, region=region))
            if compile.is_graph:
                graph = _graph(compile, region, job)
                known = graphs.setdefault(graph.id, graph)
                graphs[graph.id] = replace(known, late=(job,)) if is_late else known
            else:
                eager.setdefault(compile.key, _eager(compile))
                late_eager |= {compile.key} if is_late else set()
    return Observed(
        job=job,
        toolchain=toolchain(run.processes),
        graphs=graphs,
        eager=eager,
        fallbacks={op: row.site for process in run.processes for op, row in process.fallbacks.items()},
        firsts=firsts,
        late_eager=frozenset(late_eager),
    )


def toolchain(processes: Iterable[Process]) -> dict[str, str]:
    """Give the versions that decide which graphs there are; Python's without its last part."""
    found: Mapping[object, object] = {}
    for process in processes:
        said = process.device.get("toolchain")
        found = said if isinstance(said, Mapping) and said else found
    return versions({str(name): str(version) for name, version in found.items()})


def versions(found: Mapping[str, str]) -> dict[str, str]:
    """Cut versions to what graphs depend on: `3.11.7` to `3.11`, `2.13.0+cpu` to `2.13.0`."""
    cut = {name: version.partition("+")[0] for name, version in found.items() if version}
    if "python" in cut:
        cut["python"] = ".".join(cut["python"].split(".")[:2])
    return dict(sorted(cut.items()))


def _is_operator(compile: Compile) -> bool:
    return compile.kind in EAGER_KINDS and compile.outcome != "failed"


def _graph(compile: Compile, region: Compile | None, job: str) -> LockedGraph:
    owner = region or compile
    return LockedGraph(
        kind=compile.kind,
        key=compile.key,
        model=compile.model or owner.model,
        inputs=inputs_of(owner.inputs or compile.inputs),
        dtypes=tuple(sorted({*compile.dtypes, *(row.dtype for row in (*compile.inputs, *owner.inputs))})),
        constants=_constants(owner),
        parameters=_parameters(compile, region),
        nodes=compile.nodes,
        jobs=(job,),
    )


def _parameters(graph: Compile, region: Compile | None) -> str:
    """Give the number and the size of what a graph takes beside its region's inputs: its parameters and buffers."""
    if region is None or graph.kind == "backward":
        return ""
    own = [row for row in region.inputs if not row.path.startswith(PARAMETERS)]
    tensors = len(graph.inputs) - len(own)
    values = sum(prod(row.shape) for row in graph.inputs) - sum(prod(row.shape) for row in own)
    return (
        f"{tensors} tensor{'s' * (tensors != 1)}, {values:,} value{'s' * (values != 1)}"
        if min(tensors, values) > 0
        else ""
    )


def inputs_of(rows: Iterable[Input]) -> tuple[str, ...]:
    """Give a region's inputs as texts, parameters left out."""
    shown = [_input(row) for row in rows if not row.path.startswith(PARAMETERS)]
    if len(shown) > MOST_INPUTS:
        shown[MOST_INPUTS:] = [f"and {len(shown) - MOST_INPUTS} more"]
    return tuple(shown)


def _input(row: Input) -> str:
    sizes = "×".join("?" if size == DYNAMIC else str(size) for size in row.shape) or "scalar"
    extra = "".join(f" {word}" for word in (row.layout, row.device and f"on {row.device}") if word)
    return f"{row.path} {sizes} {row.dtype}{extra}"


def _constants(region: Compile) -> tuple[str, ...]:
    """Give what is baked in and short; an object's text may hold an address."""
    found = [f"{path}={value}" for path, value in region.constants if _SHORT.fullmatch(value) and path != "len(args)"]
    modes = [f"{name}={value}" for name, value in region.modes if name == "autocast" and value not in _NO_MODE]
    return tuple(sorted({*found, *modes}))


def _eager(compile: Compile) -> str:
    parts = [", ".join(_input(row) for row in compile.inputs)]
    parts.append(", ".join(f"{path}={value[:80]}" for path, value in compile.constants))
    return f"{compile.name}({'; '.join(part for part in parts if part)}) {compile.key}"
