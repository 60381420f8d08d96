"""What a finished run comes to: the values behind `summary.json` and the terminal report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shapeguard.core.events import SCHEMA
from shapeguard.runs.causes import Cause, explain, merge, together
from shapeguard.runs.divergence import compare
from shapeguard.runs.eager import growing
from shapeguard.runs.families import Family
from shapeguard.runs.graphs import Graph, Operator, graphs, more, operators
from shapeguard.runs.ranks import Divergence, Expected
from shapeguard.runs.steady import Again, Steadiness, steadiness
from shapeguard.runs.stream import without_collector
from shapeguard.runs.timeline import Timeline, timeline
from shapeguard.runs.totals import Totals, count, most
from shapeguard.runs.values import Fallback, Placement, Process, Run, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What the supervisor knows of the end of the program; nothing of it for a run read later."""

    exit_code: int | None = None
    signal: str = ""
    wall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem of the run, with the rank it came from."""

    code: str
    message: str
    site: Site | None = None
    times: int = 1

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        row: dict[str, object] = {"code": self.code, "message": self.message, "times": self.times}
        if self.site:
            row["site"] = self.site.plain()
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A finished run, judged."""

    command: tuple[str, ...]
    ended: Ended
    device: Mapping[str, object]
    steps: Mapping[str, object]
    steadiness: Steadiness
    totals: Totals
    ranks: Mapping[int, Totals]
    graphs: tuple[Graph, ...] = ()
    operators: tuple[Operator, ...] = ()
    causes: tuple[Cause, ...] = ()
    placements: tuple[Placement, ...] = ()
    fallbacks: Mapping[str, Fallback] = field(default_factory=dict)
    tokens: tuple[int, int] = (0, 0)
    divergence: Divergence | None = None
    expected: tuple[Expected, ...] = ()
    """Graphs that differ between ranks as they should."""
    troubles: tuple[Trouble, ...] = ()
    timeline: Timeline = field(default_factory=Timeline)
    batch_shapes: Mapping[str, Mapping[tuple[int, ...], int]] = field(default_factory=dict)
    """How many batches of the loaders had which shape, by the name of the tensor."""


@without_collector()
def summarise(run: Run, ended: Ended | None = None) -> Summary:
    """Judge a run; the same event lines give the same summary."""
    ranks = run.ranks
    explained = {rank: [explain(process) for process in found] for rank, found in ranks.items()}
    totals = {rank: count(found) for rank, found in ranks.items()}
    known: dict[tuple[str, str], Graph] = {}
    rows: list[Operator] = []
    for rank, found in ranks.items():
        for process, why in zip(found, explained[rank], strict=True):
            graphs(rank, process, why.labels, known)
        families: list[Family] = [family for why in explained[rank] for family in why.families]
        rows = more(rows, operators(found, growing(families)))
    figures = most(list(totals.values()))
    again = Again(
        regions=max((sum(why.again.regions for why in found) for found in explained.values()), default=0),
        eager=max((sum(why.again.eager for why in found) for found in explained.values()), default=0),
    )
    steady = steadiness(run.processes, figures, again)
    divergence, expected = compare(ranks)
    return Summary(
        command=_command(run),
        ended=ended or _ended(run),
        device=device_of(run),
        steps=_steps(run, steady),
        steadiness=steady,
        totals=figures,
        ranks=totals,
        graphs=tuple(known.values()),
        operators=tuple(rows),
        causes=merge([together([why.causes for why in found]) for found in explained.values()]),
        placements=tuple(dict.fromkeys(p for process in run.processes for p in process.placements)),
        fallbacks=_fallbacks(run.processes),
        tokens=_tokens(run.processes),
        divergence=divergence,
        expected=expected,
        troubles=_troubles(run),
        timeline=timeline(list(ranks.values())),
        batch_shapes=_batch_shapes(run.processes),
    )


def document(summary: Summary) -> dict[str, object]:
    """Give `summary.json`: everything that another run of the same program repeats, and `times` apart."""
    several = len(summary.ranks) > 1
    body: dict[str, object] = {
        "schema": SCHEMA,
        "command": list(summary.command),
        "exit_code": summary.ended.exit_code,
        "signal": summary.ended.signal,
        "device": dict(summary.device),
        "steps": dict(summary.steps),
        "verdict": summary.steadiness.verdict,
        "totals": summary.totals.plain(),
        "graphs": [graph.plain(ranks=several) for graph in summary.graphs],
        "eager_ops": [operator.plain() for operator in summary.operators],
        "causes": [cause.plain() for cause in summary.causes],
        "placement": [_placement(row) for row in summary.placements],
        "fallbacks": [_fallback(op, row) for op, row in summary.fallbacks.items()],
        "tokens": {"real": summary.tokens[0], "padded": summary.tokens[1]},
        "divergence": summary.divergence.plain() if summary.divergence else None,
        "rank_differences": [row.plain() for row in summary.expected],
        "problems": [trouble.plain() for trouble in summary.troubles],
        "ranks": [{"rank": rank, **totals.plain()} for rank, totals in summary.ranks.items()],
        "times": {"wall_s": summary.ended.wall_s},
    }
    return body


def _command(run: Run) -> tuple[str, ...]:
    command = run.started.get("command")
    return tuple(str(part) for part in command) if isinstance(command, list) else ()


def _ended(run: Run) -> Ended:
    """Take the end from an earlier summary where the folder has one."""
    before = run.started.get("ended")
    if not isinstance(before, dict):
        return Ended()
    code, wall = before.get("exit_code"), before.get("wall_s")
    return Ended(
        exit_code=code if isinstance(code, int) else None,
        signal=str(before.get("signal") or ""),
        wall_s=wall if isinstance(wall, (int, float)) else None,
    )


def device_of(run: Run) -> dict[str, object]:
    """Give what is known of the device: what the processes say, else what was asked for."""
    device = next((process.device for process in run.processes if process.device), {})
    asked = run.started.get("device")
    found: dict[str, object] = {**(asked if isinstance(asked, dict) else {}), **device}
    found["kind"] = {"sim": "simulated", "neuron": "real"}.get(str(found.get("kind", "sim")), str(found.get("kind")))
    found["world_size"] = max((process.world_size for process in run.processes), default=1)
    return found


def _steps(run: Run, steady: Steadiness) -> dict[str, object]:
    phases: dict[str, int] = {}
    for process in run.processes:
        for phase, number in process.phases.items():
            phases[phase] = max(phases.get(phase, 0), number)
    return {
        "total": max((process.num_steps for process in run.processes), default=0),
        "phases": dict(sorted(phases.items())),
        "warmup": max((process.warmup_steps for process in run.processes), default=2),
        "steady_after": steady.after,
    }


def _fallbacks(processes: Sequence[Process]) -> dict[str, Fallback]:
    found: dict[str, Fallback] = {}
    for process in processes:
        for op, row in process.fallbacks.items():
            if op not in found or found[op].num_bytes < row.num_bytes:
                found[op] = row
    return dict(sorted(found.items(), key=lambda item: (-item[1].num_bytes, item[0])))


def _tokens(processes: Sequence[Process]) -> tuple[int, int]:
    return sum(process.tokens[0] for process in processes), sum(process.tokens[1] for process in processes)


def _batch_shapes(processes: Sequence[Process]) -> dict[str, Counter[tuple[int, ...]]]:
    found: dict[str, Counter[tuple[int, ...]]] = {}
    for process in processes:
        for batch, times in process.batches.items():
            for name, shape in batch.shapes:
                found.setdefault(name, Counter())[shape] += times
    return found


def _troubles(run: Run) -> tuple[Trouble, ...]:
    times: dict[tuple[str, str, Site | None], int] = {}
    for process in run.processes:
        for note in process.notes:
            name = (note.code, note.message, note.site)
            times[name] = times.get(name, 0) + 1
    found = [Trouble(code=name[0], message=name[1], site=name[2], times=number) for name, number in times.items()]
    cut = sorted({process.rank for process in run.processes if process.started and not (process.end or process.forked)})
    for rank in cut:
        message = f"rank {rank} ended without a last line: it was killed or cut off, what it wrote until then is here"
        found.append(Trouble(code="cut-off", message=message))
    return tuple(found)


def _placement(row: Placement) -> dict[str, object]:
    value: dict[str, object] = {"model": row.model, "how": row.how}
    if row.loaded:
        value["loaded"] = row.loaded.plain()
    if row.site:
        value["site"] = row.site.plain()
    return value


def _fallback(op: str, row: Fallback) -> dict[str, object]:
    value: dict[str, object] = {"op": op, "calls": row.calls, "bytes": row.num_bytes}
    if row.site:
        value["site"] = row.site.plain()
    return value
