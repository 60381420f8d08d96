"""Compare ranks: the first step at which they compile different graphs, which on Neuron is a hang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shapeguard.runs.values import Compile, Process, Site

Signature = tuple[str, tuple[tuple[tuple[int, ...], str], ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one rank compiled at a step that another did not."""

    rank: int
    kind: str
    shapes: tuple[str, ...]
    """Of the inputs that differ, `input_ids 2×44`."""
    site: Site | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first step at which ranks compiled different graphs."""

    step: int
    ranks: tuple[Difference, ...]

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        rows = []
        for row in self.ranks:
            value: dict[str, object] = {"rank": row.rank, "kind": row.kind, "shapes": list(row.shapes)}
            if row.site:
                value["site"] = row.site.plain()
            rows.append(value)
        return {"step": self.step, "ranks": rows}


def divergence(ranks: Mapping[int, Iterable[Process]]) -> Divergence | None:
    """Give the first step with different regions; ranks whose keys differ by constants alone are no difference."""
    seen = {rank: _by_step(processes) for rank, processes in ranks.items()}
    seen = {rank: steps for rank, steps in seen.items() if steps}
    if len(seen) < 2:
        return None
    for step in sorted({step for steps in seen.values() for step in steps}):
        here = {rank: steps.get(step, {}) for rank, steps in seen.items()}
        shared = set.intersection(*(set(found) for found in here.values()))
        if any(found.keys() - shared for found in here.values()):
            return Divergence(step=step, ranks=tuple(_difference(rank, here[rank], shared) for rank in sorted(here)))
    return None


def _by_step(processes: Iterable[Process]) -> dict[int, dict[Signature, Compile]]:
    found: dict[int, dict[Signature, Compile]] = {}
    for process in processes:
        for compile in process.compiles:
            if compile.is_region:
                found.setdefault(compile.step, {}).setdefault(_signature(compile), compile)
    return found


def _signature(region: Compile) -> Signature:
    code = str(region.code or region.site or "")
    return code, tuple((row.shape, row.dtype) for row in region.inputs), region.collectives


def _difference(rank: int, found: Mapping[Signature, Compile], shared: set[Signature]) -> Difference:
    own = next((compile for signature, compile in found.items() if signature not in shared), None)
    if own is None:
        return Difference(rank=rank, kind="", shapes=(), site=None)
    shapes = tuple(f"{row.path} {shape_text(row.shape)}" for row in own.inputs[:4])
    return Difference(rank=rank, kind=own.kind, shapes=shapes, site=own.site or own.code)


def shape_text(shape: tuple[int, ...]) -> str:
    """Give a shape for reading: `4×512`, a scalar as `()`."""
    return "×".join(map(str, shape)) if shape else "()"
