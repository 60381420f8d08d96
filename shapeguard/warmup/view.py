"""What a warm-up tells: its plan, what became of it, its proof. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Table, Text
from shapeguard.warmup.estimate import Estimate
from shapeguard.warmup.execute import Done, Failure
from shapeguard.warmup.plan import Plan, Planned
from shapeguard.warmup.progress import span
from shapeguard.warmup.values import Miss

_MOST_ROWS = 60
SIMULATED = "Simulated: nothing was compiled for Trainium; a statement of it is refused there."


def planned(found: Plan, *, slots: int, num_bytes: int, problems: Sequence[Problem], simulated: bool) -> Report:
    """Show a plan."""
    rows = tuple(_row(each, found) for each in found.recipes)
    columns = ("recipe", "missing graphs", "eager", "compile time", "size")
    table = Table(columns=columns, rows=rows[:_MOST_ROWS], right=frozenset({1, 2}), note=_more(rows))
    return Report(
        tool="warmup",
        sections=(table,) if rows else (),
        problems=tuple(problems) + _uncovered(found),
        document=document(found, slots=slots),
        summary=tuple(_summary(found, slots=slots, num_bytes=num_bytes, simulated=simulated)),
        exit_code=Exit.FINDINGS if found.uncovered else Exit.CLEAN,
    )


def _row(each: Planned, found: Plan) -> tuple[str, ...]:
    graphs = sum(found.needs[key].is_graph for key in each.missing)
    return (
        each.recipe.label,
        str(graphs),
        str(len(each.missing) - graphs),
        time_of(each.seconds),
        size_of(each.size_bytes),
    )


def _more(rows: Sequence[object]) -> str:
    return f"and {len(rows) - _MOST_ROWS} more" if len(rows) > _MOST_ROWS else ""


def _uncovered(found: Plan) -> tuple[Problem, ...]:
    if not found.uncovered:
        return ()
    shown = ", ".join(found.needs[key].text for key in found.uncovered[:3])
    said = f"no job makes {len(found.uncovered)} of the missing graphs compile: {shown}"
    return (Problem(path="shapeguard.lock", message=said),)


def _summary(found: Plan, *, slots: int, num_bytes: int, simulated: bool) -> Iterable[str]:
    missing = len(found.here.why)
    yield f"{_counted(len(found.needs), 'graph')} in the lock, {len(found.needs) - missing} here, {missing} missing"
    if found.fetched:
        yield f"{len(found.fetched)} of the missing are in the remote ({_size(num_bytes)})"
    if found.elsewhere:
        yield f"{len(found.elsewhere)} are left to the other parts (this is {found.shard})"
    if found.recipes:
        how = "no fewer can do it" if found.is_exact else f"chosen greedily, at least {found.at_least} are needed"
        yield (
            f"{_counted(len(found.recipes), 'recipe')} ({how}), {slots} at once: {time_of(found.seconds)} to compile, "
            f"{_wall(found, slots)}, {size_of(found.size_bytes)} on disk"
        )
    elif not found.uncovered and not found.elsewhere:
        yield "nothing to compile"
    if simulated:
        yield SIMULATED


def _wall(found: Plan, slots: int) -> str:
    wall = found.wall_s(slots)
    return "for how long is unknown" if wall is None else f"{span(wall)} by the clock"


def time_of(each: Estimate) -> str:
    """Write seconds with how they are known."""
    if each.total is None:
        return "unknown"
    parts = [span(each.total) + (" (guessed by size)" if each.num_guessed else "")]
    if each.num_unknown:
        parts.append(f"unknown for {each.num_unknown}")
    return ", ".join(parts)


def size_of(each: Estimate) -> str:
    """Write bytes with how they are known."""
    if each.total is None:
        return "unknown"
    return _size(int(each.total)) + (f", unknown for {each.num_unknown}" if each.num_unknown else "")


def _size(number: int) -> str:
    if number < 10**6:
        return f"{number / 1000:.1f} kB"
    return f"{number / 10**6:.1f} MB" if number < 10**9 else f"{number / 10**9:.1f} GB"


def document(found: Plan, *, slots: int) -> dict[str, JSON]:
    """Give a plan as JSON; what is unknown is null."""
    return {
        "schema": 1,
        "needed": len(found.needs),
        "missing": sorted(found.here.why),
        "fetched": sorted(found.fetched),
        "shard": str(found.shard),
        "slots": slots,
        "cover": {"recipes": len(found.recipes), "exact": found.is_exact, "at_least": found.at_least},
        "compile_s": found.seconds.total,
        "compile_s_unknown": found.seconds.num_unknown,
        "compile_s_guessed": found.seconds.num_guessed,
        "wall_s": found.wall_s(slots),
        "size_bytes": found.size_bytes.total,
        "size_bytes_unknown": found.size_bytes.num_unknown,
        "recipes": [
            {
                "job": each.recipe.name,
                "missing": sorted(each.missing),
                "compile_s": each.seconds.total,
                "size_bytes": each.size_bytes.total,
            }
            for each in found.recipes
        ],
        "uncovered": list(found.uncovered),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a warm-up."""

    plan: Plan
    done: Done
    misses: tuple[Miss, ...] | None = None
    """What the proof found; None where none was asked for."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    num_fetched: int = 0
    compiles: bool = True
    """Whether what was missing might be compiled."""
    is_simulated: bool = True


def told(outcome: Outcome, *, slots: int) -> Report:
    """Show what became of a warm-up."""
    found, done, misses = outcome.plan, outcome.done, outcome.misses
    missed = misses or ()
    left = _left(outcome)
    problems = (*outcome.problems, *_uncovered(found), *_failed(done), *left)
    return Report(
        tool="warmup",
        sections=(*_logs(done.failures), *_misses(missed)),
        problems=problems,
        document={
            **document(found, slots=slots),
            "num_fetched": outcome.num_fetched,
            "finished": sorted(done.finished),
            "compiled": sum(len(result.records) for result in done.finished.values()),
            "failures": [{"job": each.name, "why": each.why} for each in done.failures],
            "problems": [{"where": each.path, "message": each.message} for each in problems],
            "misses": None if misses is None else [_miss_json(each) for each in missed],
        },
        summary=tuple(_outcome_lines(outcome)),
        exit_code=Exit.FINDINGS if done.failures or done.left or missed or found.uncovered or left else Exit.CLEAN,
    )


def _left(outcome: Outcome) -> tuple[Problem, ...]:
    """Name what is missing where nothing may be compiled and no proof tells of it."""
    if outcome.compiles or outcome.misses is not None:
        return ()
    found = outcome.plan
    whys = [(found.needs[key], why) for key, why in found.here.why.items()]
    return tuple(Problem(path=f"job {', '.join(need.jobs)}", message=f"{need.text}: {why}") for need, why in whys)


def _outcome_lines(outcome: Outcome) -> Iterable[str]:
    found, done = outcome.plan, outcome.done
    if outcome.num_fetched:
        yield f"{_counted(outcome.num_fetched, 'file')} fetched from the remote"
    here = len(found.needs) - len(found.here.why)
    yield f"{_counted(len(found.needs), 'graph')} in the lock, {here} here before anything was run"
    if outcome.compiles and found.recipes:
        failed = f", {len(done.failures)} failed" if done.failures else ""
        yield f"{len(done.finished)} of {_counted(len(found.recipes), 'recipe')} done in {span(done.wall_s)}{failed}"
    if found.elsewhere:
        yield f"{len(found.elsewhere)} graphs are left to the other parts (this is {found.shard})"
    if outcome.misses is not None:
        yield f"verified with compiling forbidden: {_counted(len(outcome.misses), 'miss', 'misses')}"
    yield from outcome.notes
    if outcome.is_simulated:
        yield SIMULATED


def _failed(done: Done) -> tuple[Problem, ...]:
    found = [
        Problem(path=f"job {each.name}", message=each.why + (f"; {each.hint}" if each.hint else ""))
        for each in done.failures
    ]
    if done.left:
        found.append(Problem(path=f"job {', '.join(done.left)}", message="not begun, since another failed"))
    return tuple(found)


def _logs(failures: Iterable[Failure]) -> list[Text]:
    return [
        Text(text="\n".join(f"{each.name} | {line}" for line in each.log.splitlines()), is_verbatim=True)
        for each in failures
        if each.log and not each.misses
    ]


def _misses(misses: Sequence[Miss]) -> list[Table]:
    if not misses:
        return []
    rows = tuple((_where(miss), miss.text, miss.why) for miss in misses)
    return [Table(title="Would compile", columns=("job", "graph", "why"), rows=rows[:_MOST_ROWS], note=_more(rows))]


def _where(miss: Miss) -> str:
    return miss.job + (f" rank {miss.rank}" if miss.rank else "")


def _miss_json(miss: Miss) -> dict[str, JSON]:
    return {"job": miss.job, "rank": miss.rank, "graph": miss.key, "what": miss.text, "why": miss.why}


def _counted(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
