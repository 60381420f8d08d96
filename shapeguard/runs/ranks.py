"""How the ranks of a run differ, as values: where they diverge, and where they differ as they should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapeguard.runs.values import Site

_HANG = "ranks diverge at step {}, on Neuron they would hang"
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one rank compiled at a step at which ranks differ."""

    rank: int
    kind: str
    """`region`, `forward`, `collective`; empty where it compiled nothing of the kind."""
    shapes: tuple[str, ...]
    """Of the inputs that differ between the ranks, `input_ids 2×44`."""
    site: Site | None
    owner: Site | None = None
    """The line that made the batch."""

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        value: dict[str, object] = {"rank": self.rank, "kind": self.kind, "shapes": list(self.shapes)}
        if self.site:
            value["site"] = self.site.plain()
        if self.owner:
            value["owner"] = self.owner.plain()
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first step at which ranks compiled different graphs; on Neuron that is a hang."""

    step: int
    phase: str
    kind: str
    """What differs: `region`, `forward`, `collective`, or `exchange`: the collectives in graphs of equal inputs."""
    ranks: tuple[Difference, ...]

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        rows = [row.plain() for row in self.ranks]
        return {"step": self.step, "phase": self.phase, "kind": self.kind, "ranks": rows}

    def __str__(self) -> str:
        """Say it in one line: who differs, and from what."""
        if self.kind == "exchange":
            where = self.ranks[0].site
            return f"{_HANG.format(self.step)}: from equal inputs came graphs that exchange other data ({where})"
        groups = _grouped(self.ranks)
        others = max(groups, key=lambda group: (len(group), -group[0].rank)) if len(groups) > 1 else []
        told = [_says(group) for group in groups if group is not others]
        rest = _words(others[0]) if others else ""
        name = "the others" if len(others) > 1 else f"rank {others[0].rank}" if others else ""
        parts = [*told, f"{name} {rest}"] if others else told
        return f"{_HANG.format(self.step)}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Graphs that differ between ranks as they should."""

    kind: str
    """`constants` (a shard's offset), `sizes` (a smaller last shard), `alone` (one rank's own evaluation)."""
    graphs: int
    ranks: tuple[int, ...]
    site: Site | None

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        row: dict[str, object] = {"kind": self.kind, "graphs": self.graphs, "ranks": list(self.ranks)}
        if self.site:
            row["site"] = self.site.plain()
        return row

    def __str__(self) -> str:
        """Say it in one line."""
        what = f"{self.graphs} graph{'s' * (self.graphs != 1)}"
        differ = "differs" if self.graphs == 1 else "differ"
        at = f" ({self.site})" if self.site else ""
        if self.kind == "constants":
            return f"{what} {differ} between ranks by constants alone{at}, as the offsets of their shards do"
        if self.kind == "sizes":
            return f"{what} {differ} between ranks by the sizes of what they hold{at}, as shards that are not equal do"
        who = ", ".join(map(str, self.ranks))
        ranks = f"rank {who} alone compiles" if len(self.ranks) == 1 else f"ranks {who} alone compile"
        return f"{ranks} {what}{at}: the others wait for that at their next collective"


def _grouped(rows: Sequence[Difference]) -> list[list[Difference]]:
    found: dict[object, list[Difference]] = {}
    for row in rows:
        found.setdefault((row.kind, row.shapes), []).append(row)
    return sorted(found.values(), key=lambda group: (len(group), group[0].rank))


def _says(group: Sequence[Difference]) -> str:
    ranks = ", ".join(str(row.rank) for row in group)
    name = f"rank {ranks}" if len(group) == 1 else f"ranks {ranks}"
    row = group[0]
    at = f" at {row.site}" if row.site else ""
    owner = f" (batch from {row.owner})" if row.owner and row.owner != row.site else ""
    return f"{name} {_words(row)}{at}{owner}"


def _words(row: Difference) -> str:
    shapes = ", ".join(row.shapes)
    if not row.kind:
        return f"compiled nothing new (had {shapes})" if shapes else "compiled nothing new"
    return f"got {shapes}" if shapes else "compiled other graphs"


def shape_text(shape: tuple[int, ...]) -> str:
    """Give a shape for reading: `4×512`, a scalar as `()`."""
    return "×".join(map(str, shape)) if shape else "()"
