"""A finished run as records for the graph cache: pure, so that nothing of a run ever depends on the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shapeguard.core.graphs import EAGER_KINDS, REAL, SIMULATED, GraphInput, GraphKey, GraphRecord, ModelKey
from shapeguard.runs.values import Compile, Process, Run

_COMPILER = "neuronx-cc"


def records(run: Run, *, job: str = "") -> list[GraphRecord]:
    """Give one record for each graph and eager operator of a run, whatever ranks had it."""
    found: dict[str, GraphRecord] = {}
    for _, record in recorded(run, job=job):
        found.setdefault(record.key.id, record)
    return list(found.values())


def recorded(run: Run, *, job: str = "") -> Iterator[tuple[Compile, GraphRecord]]:
    """Give every compile of a graph or operator with its record, in the order of ranks and time."""
    for process in run.processes:
        regions = {each.region: each for each in process.compiles if each.kind == "region"}
        for compile in process.compiles:
            is_operator = compile.kind in EAGER_KINDS and compile.outcome != "failed"
            if compile.key and (compile.is_graph or is_operator):
                yield compile, _record(process, compile, regions.get(compile.region), job)


def _record(process: Process, compile: Compile, region: Compile | None, job: str) -> GraphRecord:
    owner = region if region is not None and compile.is_graph else compile
    versions = _versions(process.device)
    return GraphRecord(
        key=_key(process.device, compile.key, versions),
        model=ModelKey(name=compile.model or owner.model, config=compile.config or owner.config),
        kind=compile.kind,
        name=compile.name,
        inputs=tuple(
            GraphInput(path=each.path, shape=each.shape, dtype=each.dtype, layout=each.layout)
            for each in owner.inputs or compile.inputs
            if all(size >= 0 for size in each.shape)
        ),
        constants=tuple(dict.fromkeys((*owner.constants, *compile.constants))),
        modes=owner.modes,
        world_size=process.world_size,
        tp=compile.tp or owner.tp,
        nodes=compile.nodes,
        operators=compile.operators,
        compile_s=compile.seconds,
        versions=versions,
        neuron_key=compile.neuron,
        persistent_key=compile.neff,
        source="trace",
        jobs=(job,) if job else (),
    )


def _key(device: Mapping[str, object], graph: str, versions: Mapping[str, str]) -> GraphKey:
    flags = device.get("flags")
    compiler = versions.get(_COMPILER, "")
    return GraphKey(
        graph=graph,
        device=REAL if device.get("kind") in ("real", "neuron") else SIMULATED,
        target=str(device.get("target") or ""),
        compiler=f"{_COMPILER} {compiler}" if compiler else "",
        flags=tuple(map(str, flags)) if isinstance(flags, (list, tuple)) else (),
    )


def _versions(device: Mapping[str, object]) -> dict[str, str]:
    toolchain = device.get("toolchain")
    if not isinstance(toolchain, Mapping):
        return {}
    return {str(name): str(version) for name, version in sorted(toolchain.items()) if version}
