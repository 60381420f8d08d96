"""The graphs and eager operators of a run, one row each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from shapeguard.runs.families import Family
from shapeguard.runs.tracks import Label
from shapeguard.runs.values import Compile, Input, Process, Site


@dataclass(slots=True, kw_only=True)
class Graph:
    """One graph after AOTAutograd: what it takes, how often it was asked for, and why it exists."""

    key: str
    kind: str
    name: str
    model: str
    inputs: tuple[Input, ...]
    shown: tuple[Input, ...]
    """Inputs of its region, which a reader knows; the graph's own where there is no region."""
    nodes: int
    count: int
    first_step: int
    cause: str
    change: str
    """What differs from the nearest earlier region: `input_ids dim 1: 9 → 13`."""
    code: str
    site: Site | None
    region: int = 0
    """Number of the region in its process."""
    ranks: list[int] = field(default_factory=list)
    operators: Mapping[str, int] = field(default_factory=dict)
    """How often each operator occurs in it."""
    seconds: float | None = None
    """What its compile took; None where that was not measured."""
    certainty: str = ""
    """"±" where the count rests on a guess about Neuron."""

    def plain(self, *, ranks: bool) -> dict[str, object]:
        """Give it as JSON; `ranks` says which ranks have it."""
        row: dict[str, object] = {
            "key": self.key,
            "kind": self.kind,
            "name": self.name,
            "model": self.model,
            "inputs": [_plain(value) for value in self.inputs],
            "nodes": self.nodes,
            "count": self.count,
            "first_step": self.first_step,
            "cause": self.cause,
            "change": self.change,
            "code": self.code,
        }
        if self.site:
            row["site"] = self.site.plain()
        if ranks:
            row["ranks"] = self.ranks
        if self.certainty:
            row["certainty"] = self.certainty
        return row


@dataclass(slots=True, kw_only=True)
class Operator:
    """One eager operator: its distinct keys, and the size that grows in them."""

    op: str
    signatures: int
    growing: dict[str, object] | None
    certainty: str
    site: Site | None

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        row: dict[str, object] = {"op": self.op, "signatures": self.signatures, "growing": self.growing}
        if self.certainty:
            row["certainty"] = self.certainty
        if self.site:
            row["site"] = self.site.plain()
        return row


@cache
def _plain(value: Input) -> dict[str, object]:
    # Held once: a large model hands thousands of graphs the same parameters.
    return value.plain()


def graphs(rank: int, process: Process, labels: Mapping[int, Label], known: dict[tuple[str, str], Graph]) -> None:
    """Add a process's graphs to those known."""
    regions = {compile.region: compile for compile in process.compiles if compile.kind == "region"}
    asked: dict[tuple[str, str], int] = {}
    for compile in process.compiles:
        if not compile.is_graph:
            continue
        key = (compile.kind, compile.key)
        asked[key] = asked.get(key, 0) + 1
        row = known.get(key)
        if row is None:
            row = known[key] = _graph(compile, regions.get(compile.region), labels.get(compile.region))
        row.count = max(row.count, asked[key])
        row.certainty = row.certainty or compile.certainty
        if rank not in row.ranks:
            row.ranks.append(rank)


def _graph(graph: Compile, region: Compile | None, label: Label | None) -> Graph:
    owner = region or graph
    return Graph(
        key=graph.key,
        kind=graph.kind,
        name=graph.name,
        model=graph.model or owner.model,
        inputs=graph.inputs or owner.inputs,
        shown=owner.inputs or graph.inputs,
        nodes=graph.nodes,
        count=0,
        first_step=graph.step,
        cause=label.kind if label else "first",
        change=label.text if label else "",
        code=str(owner.code or ""),
        region=graph.region,
        site=graph.site or owner.site,
        operators=graph.operators,
        seconds=graph.seconds,
    )


def operators(processes: Iterable[Process], growing: Mapping[str, Family]) -> list[Operator]:
    """Give one rank's eager operators, those with the most signatures first."""
    keys: dict[str, dict[str, Compile]] = {}
    for process in processes:
        for compile in process.compiles:
            if compile.is_eager:
                keys.setdefault(compile.name, {}).setdefault(compile.key or str(compile.n), compile)
    rows = [_operator(op, list(found.values()), growing.get(op)) for op, found in keys.items()]
    return sorted(rows, key=lambda row: (-row.signatures, row.op))


def _operator(op: str, found: Sequence[Compile], family: Family | None) -> Operator:
    site = family.events[-1].site if family else next((c.site for c in found if c.site), None)
    certainty = next((c.certainty for c in found if c.certainty), "")
    return Operator(op=op, signatures=len(found), growing=_growth(family), certainty=certainty, site=site)


def _growth(family: Family | None) -> dict[str, object] | None:
    if family is None:
        return None
    return {
        "input": family.at.path,
        "dim": family.at.dim,
        "by": family.grows,
        "from": family.values[0],
        "to": family.values[-1],
        "signatures": len(family.values),
    }


def more(known: list[Operator], other: Iterable[Operator]) -> list[Operator]:
    """Join the operators of two ranks: each with the larger count."""
    rows = {row.op: row for row in known}
    for row in other:
        if row.op not in rows or rows[row.op].signatures < row.signatures:
            rows[row.op] = row
    return sorted(rows.values(), key=lambda row: (-row.signatures, row.op))
