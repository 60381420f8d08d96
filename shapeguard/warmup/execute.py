"""Runs what is planned: starts recipes as room allows, watches time and memory, tries again, writes the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shapeguard.warmup.executor import Executor
from shapeguard.warmup.journal import Journal
from shapeguard.warmup.schedule import Memory
from shapeguard.warmup.values import LOST, MEMORY, TIMEOUT, Miss, Result, Work

_LOOK_S = 0.05
_MOST_LOSSES = 3
"""Tries of one recipe that may end by the death of their worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A recipe to run."""

    name: str
    label: str
    expected_s: float | None
    cores: int
    """NeuronCores that it takes."""
    work: Callable[[int], Work]
    """Gives the try with this number."""
    keep: Callable[[Result], str]
    """Takes what a try has brought; gives what is wrong with it, or an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What holds for every recipe."""

    timeout_s: float = 0.0
    retries: int = 1
    is_fail_fast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A recipe that did not come to a good end."""

    name: str
    why: str
    hint: str = ""
    log: str = ""
    exit_code: int | None = None
    misses: tuple[Miss, ...] = ()
    """What would have compiled while that was forbidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of all recipes."""

    finished: Mapping[str, Result]
    failures: tuple[Failure, ...] = ()
    left: tuple[str, ...] = ()
    """Recipes that were not begun, since another failed."""
    wall_s: float = 0.0


class Listener:
    """Is told what happens; does nothing by itself."""

    def began(self, item: Item, number: int) -> None:
        """A recipe is begun, for the n-th time."""

    def ended(self, item: Item, result: Result, why: str) -> None:
        """A try has ended; `why` is empty for a good end."""

    def looked(self, running: Sequence[Item]) -> None:
        """Time goes by."""


@dataclass(slots=True)
class _Running:
    item: Item
    work: Work
    began: float
    is_stopped: bool = False
    was_alone: bool = False
    """When it was stopped for want of memory, nothing else ran."""


class Execution:
    """One run of a plan."""

    def __init__(
        self, items: Sequence[Item], executor: Executor, limits: Limits, *, memory: Memory, journal: Journal | None
    ) -> None:
        self._executor = executor
        self._limits = limits
        self._memory = memory
        self._journal = journal
        self._queue = list(items)
        self._running: dict[str, _Running] = {}
        self._tries: dict[str, int] = {}
        self._faults: dict[str, int] = {}
        self._losses: dict[str, int] = {}
        self._finished: dict[str, Result] = {}
        self._failures: list[Failure] = []

    def run(self, listener: Listener) -> Done:
        """Run everything; gives what became of it."""
        begin = time.monotonic()
        try:
            while self._queue or self._running:
                self._start(listener)
                for result in self._executor.results(_LOOK_S):
                    if (running := self._running.pop(result.id, None)) is not None:
                        # Before the result is looked at: a free worker waits for nobody.
                        self._start(listener)
                        self._end(running, result, listener)
                self._watch()
                listener.looked([each.item for each in self._running.values()])
                if self._failures and self._limits.is_fail_fast:
                    break
        finally:
            self._executor.close()
        left = [each.name for each in self._queue] + [each.item.name for each in self._running.values()]
        return Done(
            finished=self._finished,
            failures=tuple(self._failures),
            left=tuple(left),
            wall_s=time.monotonic() - begin,
        )

    def _start(self, listener: Listener) -> None:
        held = self._by_name() if self._memory.limit_bytes else {}
        for item in list(self._queue):
            names = {each.item.name for each in self._running.values()}
            number = self._tries.get(item.name, 0) + 1
            if not self._executor.has_room(item.cores):
                if not names:
                    self._queue.remove(item)
                    self._fail(item, Result(id=""), f"it takes {item.cores} NeuronCores, more than there are")
                    continue
                break
            if not self._memory.fits(item.name, names, held):
                continue
            self._queue.remove(item)
            self._tries[item.name] = number
            work = item.work(number)
            self._write(type="started", recipe=item.name, number=number)
            self._executor.start(work)
            self._running[work.id] = _Running(item=item, work=work, began=time.monotonic())
            listener.began(item, number)

    def _by_name(self) -> dict[str, int]:
        """Give what each recipe holds, and under "" what nobody uses now."""
        found = self._executor.memory()
        return {
            self._running[id].item.name if id else "": size for id, size in found.items() if id in ("", *self._running)
        }

    def _watch(self) -> None:
        """End what runs for too long, and the youngest where memory runs out."""
        now = time.monotonic()
        held = self._by_name()
        for running in self._running.values():
            is_late = 0 < self._limits.timeout_s < now - running.began
            if is_late and not running.is_stopped and self._executor.is_here:
                running.is_stopped = True
                self._executor.stop(running.work.id, TIMEOUT)
        alive = list(self._running.values())
        if self._memory.is_full(held) and alive and not any(each.is_stopped for each in alive):
            youngest = max(alive, key=lambda each: each.began)
            youngest.is_stopped, youngest.was_alone = True, len(alive) == 1
            self._executor.stop(youngest.work.id, MEMORY)

    def _end(self, running: _Running, result: Result, listener: Listener) -> None:
        item = running.item
        if result.peak_bytes:
            self._memory.learn(item.name, result.peak_bytes)
        wrong = self._wrong(item, result)
        facts = {"recipe": item.name, "peak_bytes": result.peak_bytes, "wall_s": result.wall_s}
        if not wrong:
            self._finished[item.name] = result
            self._write(type="finished", **facts)
        else:
            self._write(type="failed", why=wrong, **facts)
            self._again(running, result, wrong)
        listener.ended(item, result, wrong)

    def _wrong(self, item: Item, result: Result) -> str:
        if result.why == TIMEOUT:
            return f"it ran for more than {self._limits.timeout_s:.0f} s"
        if result.why in (LOST, MEMORY):
            return result.why
        # What it has compiled is kept, whatever became of the program.
        kept = item.keep(result)
        if result.why:
            return result.why
        if result.misses:
            return f"{len(result.misses)} would have compiled"
        if result.exit_code:
            return f"its program ended with exit code {result.exit_code}"
        return kept

    def _again(self, running: _Running, result: Result, wrong: str) -> None:
        """Queue it once more, or give it up."""
        item = running.item
        if result.why == MEMORY:
            if running.was_alone:
                self._fail(item, result, "it takes more than --max-memory by itself")
            else:
                # How much it would have taken is not known: next time it runs alone.
                self._memory.learn(item.name, self._memory.limit_bytes)
                self._queue.append(item)
            return
        counts, most = (self._losses, _MOST_LOSSES) if result.why == LOST else (self._faults, self._limits.retries)
        counts[item.name] = counts.get(item.name, 0) + 1
        if counts[item.name] <= most and not result.misses:
            self._queue.append(item)
        else:
            self._fail(item, result, "its worker was killed again and again" if result.why == LOST else wrong)

    def _fail(self, item: Item, result: Result, why: str) -> None:
        self._failures.append(
            Failure(
                name=item.name,
                why=why,
                hint=result.hint,
                log=result.log,
                exit_code=result.exit_code,
                misses=result.misses,
            )
        )

    def _write(self, **row: object) -> None:
        if self._journal is not None:
            self._journal.write(**row)
