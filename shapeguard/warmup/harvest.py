"""What a finished run left: records of its graphs, each with the file that now lies in the folder of the stack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from shapeguard.cache import codec
from shapeguard.cache.neff_folder import digest_of
from shapeguard.core.errors import CacheError
from shapeguard.core.events import Outcome
from shapeguard.core.graphs import GraphRecord, Neff
from shapeguard.core.neffs import place_of
from shapeguard.lock.observe import toolchain
from shapeguard.runs.records import recorded
from shapeguard.runs.stream import read_run
from shapeguard.runs.values import Compile, Process, Run
from shapeguard.warmup.values import Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """What a run left."""

    records: tuple[GraphRecord, ...] = ()
    """Of graphs that are compiled, with their files."""
    seen: tuple[str, ...] = ()
    """Keys that it asked for and got."""
    misses: tuple[Miss, ...] = ()
    """What it asked for while compiling was forbidden."""
    toolchain: dict[str, str] = field(default_factory=dict)


def harvest(folder: Path, neff_dir: Path, *, job: str) -> Harvest:
    """Read a run folder, and the files that its graphs were compiled to."""
    run = read_run(folder)
    found: dict[str, GraphRecord] = {}
    seen: dict[str, None] = {}
    for compile, record in recorded(run, job=job):
        seen[compile.key] = None
        if compile.neff and record.key.id not in found:
            neff = _neff(neff_dir, place_of(compile.neff))
            if neff is not None:
                found[record.key.id] = replace(record, neff=neff, source="warmup")
    return Harvest(
        records=tuple(found.values()),
        seen=tuple(seen),
        misses=tuple(_misses(run, job)),
        toolchain=toolchain(run.processes),
    )


def _neff(root: Path, place: str) -> Neff | None:
    path = root / place
    try:
        return Neff(digest=digest_of(path), size_bytes=path.stat().st_size, path=place)
    except (OSError, CacheError):
        return None


def _misses(run: Run, job: str) -> Iterable[Miss]:
    """Give what was refused: it has a key, unlike a region that Neuron could not compile at all."""
    told: set[tuple[int, str]] = set()
    for process in run.processes:
        refused = [each for each in process.compiles if each.outcome == Outcome.FAILED and each.key]
        for compile in refused:
            if (process.rank, compile.key) not in told:
                told.add((process.rank, compile.key))
                yield _miss(process, compile, job)


def _miss(process: Process, compile: Compile, job: str) -> Miss:
    as_if = replace(process, compiles=[each if each is not compile else _compiled(each) for each in process.compiles])
    record = next((record for each, record in recorded(Run(processes=(as_if,)), job=job) if each.n == compile.n), None)
    what = f"{compile.kind} {compile.model or compile.name}".strip()
    at = f" at {compile.site}" if compile.site else ""
    return Miss(
        key=compile.key,
        text=what,
        why=f"asked for{at}",
        job=job,
        rank=process.rank,
        record=codec.encode(record) if record is not None else b"",
    )


def _compiled(compile: Compile) -> Compile:
    return replace(compile, outcome=Outcome.COMPILED)
