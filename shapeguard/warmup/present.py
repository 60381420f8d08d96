"""What of a lock is compiled here: a record that names its file, and that file, whole, in the folder of the stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shapeguard.cache.neff_folder import digest_of
from shapeguard.cache.why import nearest
from shapeguard.checks.signatures import as_compile, inputs_of
from shapeguard.core.errors import CacheError
from shapeguard.core.graphs import GraphInput, GraphKey, GraphRecord, ModelKey
from shapeguard.warmup.values import EAGER, Need

COMPILER = "neuronx-cc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Which graphs are compiled here, and why the others are not."""

    records: Mapping[str, GraphRecord] = field(default_factory=dict)
    """By key: of those that are."""
    why: Mapping[str, str] = field(default_factory=dict)
    """By key: of those that are not."""


def look(
    needs: Mapping[str, Need], records: Iterable[GraphRecord], neff_dir: Path, *, device: str, compiler: str
) -> Here:
    """Tell for each graph whether it is compiled here for this device and compiler, every byte of it compared."""
    known = [record for record in records if record.key.device == device]
    by_key: dict[str, list[GraphRecord]] = {}
    for record in known:
        by_key.setdefault(record.key.graph, []).append(record)
    found: dict[str, GraphRecord] = {}
    why: dict[str, str] = {}
    for key, need in needs.items():
        reasons = []
        for record in by_key.get(key, ()):
            reason = _reason(record, neff_dir, compiler)
            if not reason:
                found[key] = record
                break
            reasons.append(reason)
        else:
            # The reason that is nearest to being there says most.
            why[key] = max(reasons, key=_nearness, default="") or _unknown(need, known, compiler)
    return Here(records=found, why=why)


def _nearness(reason: str) -> int:
    return int(reason.startswith("its file")) * 2 + int(reason.startswith(COMPILER))


def compiler_of(record: GraphRecord) -> str:
    """Give the version of the compiler that a record's file was made with; empty where it was none."""
    return record.versions.get(COMPILER, record.key.compiler.removeprefix(COMPILER).strip())


def _reason(record: GraphRecord, neff_dir: Path, compiler: str) -> str:
    """Say why the file of a record cannot be used; empty where it can."""
    theirs = compiler_of(record)
    if theirs != compiler:
        return f"{COMPILER} {theirs or 'none'} compiled it, here is {compiler or 'none'}"
    neff = record.neff
    if neff is None or not neff.path:
        return "known, but not compiled here"
    path = neff_dir / neff.path
    try:
        size = path.lstat().st_size
    except OSError:
        return f"its file {neff.path} is gone"
    if size != neff.size_bytes:
        return f"its file {neff.path} has {size} bytes, the record says {neff.size_bytes}"
    try:
        return (
            "" if digest_of(path) == neff.digest else f"its file {neff.path} is damaged: another digest than recorded"
        )
    except CacheError as error:
        return f"its file {neff.path} cannot be read: {error.message}"


def _unknown(need: Need, known: list[GraphRecord], compiler: str) -> str:
    """Say what the nearest known graph has otherwise."""
    near = nearest(as_record(need, compiler), [record for record in known if record.is_eager == (need.kind == EAGER)])
    if near is None:
        return "no such graph is known here"
    # A lock says less of a graph than a record does: what it leaves out is no difference.
    told = [each for each in near.differences if each.wanted != "none" and each.found != "none"]
    said = [f"{each.part} {each.found} → {each.wanted}" for each in told[:3]]
    return f"never compiled here; the nearest known graph differs in {', '.join(said) or 'its program'}"


def as_record(need: Need, compiler: str) -> GraphRecord:
    """Give what a lock says of a graph as a record, to compare it with others."""
    if need.kind == EAGER:
        call = as_compile(f"{need.text} {need.key}")
        rows, constants = call.inputs, call.constants
    else:
        rows, constants = inputs_of(need.inputs), ()
    return GraphRecord(
        key=GraphKey(graph=need.key, device="simulated", target=need.target),
        model=ModelKey(name="" if need.kind == EAGER else need.name),
        kind=need.kind,
        name=need.name if need.kind == EAGER else "",
        inputs=tuple(
            GraphInput(path=row.path, shape=row.shape, dtype=row.dtype, layout=row.layout)
            for row in rows
            if all(size >= 0 for size in row.shape)
        ),
        constants=constants,
        versions={COMPILER: compiler} if compiler else {},
    )
