"""A warm-up from its plan to its proof."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shapeguard.cache import codec
from shapeguard.cache.store import GraphCache
from shapeguard.cache.why import nearest
from shapeguard.checks.job import Job, processes
from shapeguard.core.errors import UsageError
from shapeguard.core.graphs import GraphRecord
from shapeguard.lock.values import Lock
from shapeguard.warmup import journal
from shapeguard.warmup.estimate import Estimator
from shapeguard.warmup.execute import Done, Execution, Item, Limits, Listener
from shapeguard.warmup.executor import Room, open_executor
from shapeguard.warmup.items import Maker
from shapeguard.warmup.place import Place, gather
from shapeguard.warmup.plan import COST, Plan, Shard, plan, recipes
from shapeguard.warmup.present import Here
from shapeguard.warmup.processes import available_bytes
from shapeguard.warmup.schedule import Memory, slots_for
from shapeguard.warmup.statement import digest_of_lock
from shapeguard.warmup.values import Miss, needs

_SHARE_OF_MEMORY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a warm-up runs."""

    slots: int = 0
    """0: by processors and memory."""
    max_memory: int = 0
    """0: nine tenths of what is free."""
    limits: Limits = field(default_factory=Limits)
    order: str = COST
    shard: Shard = field(default_factory=Shard)
    executor: str = "local"
    cores: int = 0
    """0: as many as the recipes at once take."""
    speed: float = 1000.0
    is_resumed: bool = False


class Warmup:
    """One warm-up of the jobs of a lock."""

    def __init__(
        self,
        place: Place,
        jobs: Sequence[Job],
        options: Options,
        *,
        listener: Callable[[Sequence[Item], int], Listener],
    ) -> None:
        self._place = place
        self._options = options
        self._listener = listener
        self.lock: Lock = place.lock()
        self.jobs = _known(jobs, self.lock, place.lock_file)
        self._needs = needs(self.lock, [job.name for job in self.jobs])
        self._past = journal.read(self._journal_file)

    @property
    def _journal_file(self) -> Path:
        return self._place.home / f"journal{self._place.part}.jsonl"

    def plan(self, *, fetched: frozenset[str] = frozenset()) -> Plan:
        """Say what is to be done."""
        records = self._place.records()
        return plan(
            self.lock,
            self.jobs,
            self._place.look(self._needs, records),
            estimator=Estimator(records, device=self._place.device),
            fetched=fetched,
            shard=self._options.shard,
            order=self._options.order,
        )

    def slots(self, num_recipes: int) -> int:
        """Give how many recipes run at once."""
        if self._options.executor != "local" and not self._options.slots:
            return max(1, num_recipes)  # the others' own schedule holds them back
        names = {job.name for job in self.jobs}
        peaks = [peak for name, peak in self._past.peaks.items() if name in names]
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return slots_for(
            self._options.slots, num_recipes=num_recipes, num_cpus=cpus, limit_bytes=self._limit(), peaks=peaks
        )

    def gather(self) -> int:
        """Take in what a warm-up that was killed had compiled."""
        return gather(self._place)

    def run(self, wanted: Plan) -> Done:
        """Run the recipes of a plan."""
        header = {"lock": digest_of_lock(self.lock), "toolchain": self._place.toolchain, "device": self._place.device}
        if self._options.is_resumed and self._past.header:
            _same(self._past.header, header, self._journal_file)
        notes = journal.Journal(self._journal_file, keep=self._options.is_resumed)
        try:
            if not (self._options.is_resumed and self._past.header):
                notes.write(type="plan", schema=journal.SCHEMA, **header)
                for name, peak in self._past.peaks.items():
                    notes.write(type="measured", recipe=name, peak_bytes=peak)
            maker = self._maker(wanted.here, speed=self._options.speed)
            with GraphCache(self._place.cache_dir) as cache:
                items = [
                    maker.warming(each, cache, expected_s=self._expected(each.recipe.name, each.seconds.total))
                    for each in wanted.recipes
                ]
                return self._execute(items, notes)
        finally:
            notes.close()

    def _expected(self, name: str, compile_s: float | None) -> float | None:
        """Give how long a recipe may take: as before, or by what it has to compile."""
        if name in self._past.walls:
            return self._past.walls[name]
        if compile_s is None or not self._options.speed:
            return None
        return compile_s / self._options.speed

    def prove(self) -> tuple[Done, list[Miss]]:
        """Run all jobs to their end while compiling is forbidden; gives what would have compiled.

        What is not there is known without a run; only jobs that could come through are run.
        """
        records = self._place.records()
        here = self._place.look(self._needs, records)
        misses = [
            Miss(key=key, text=self._needs[key].text, why=why, job=", ".join(self._needs[key].jobs))
            for key, why in sorted(here.why.items())
        ]
        whole = [each for each in recipes(self.lock, self.jobs) if not any(key in here.why for key in each.keys)]
        maker = self._maker(here, speed=0.0)
        done = self._execute([maker.proving(each) for each in whole], None)
        for failure in done.failures:
            misses += [_explained(miss, records, here.records) for miss in failure.misses]
        return done, misses

    def _maker(self, here: Here, *, speed: float) -> Maker:
        timeout_s = self._options.limits.timeout_s
        return Maker(self._place, self.lock, self._needs, here, speed=speed, timeout_s=timeout_s)

    def _execute(self, items: Sequence[Item], notes: journal.Journal | None) -> Done:
        if not items:
            return Done(finished={})
        slots = self.slots(len(items))
        widest = max(processes(job.settings.world) for job in self.jobs)
        cores = self._options.cores or slots * widest
        room = Room(slots=slots, cores=cores, root=self._place.root)
        executor = open_executor(self._options.executor, room)
        limit = self._limit() if executor.is_here else 0
        memory = Memory(limit, slots, self._past.peaks, is_strict=bool(self._options.max_memory))
        execution = Execution(items, executor, self._options.limits, memory=memory, journal=notes)
        return execution.run(self._listener(items, slots))

    def _limit(self) -> int:
        return self._options.max_memory or int(available_bytes() * _SHARE_OF_MEMORY)


def _known(jobs: Sequence[Job], lock: Lock, file: Path) -> list[Job]:
    """Refuse jobs that the lock does not have, or has with other settings: their graphs are not known."""
    for job in jobs:
        locked = lock.jobs.get(job.name)
        if locked is None:
            raise UsageError(f"{file} does not have job {job.name!r}", hint="run `shapeguard lock`")
        if locked.settings and locked.settings != job.locked.settings:
            raise UsageError(
                f"the settings of job {job.name!r} changed since it was locked", hint="run `shapeguard lock`"
            )
    return list(jobs)


def _same(past: Mapping[str, object], now: Mapping[str, object], file: Path) -> None:
    for name, value in now.items():
        if past.get(name) != value:
            raise UsageError(
                f"{file} is the journal of a warm-up with another {name}", hint="leave out --resume to begin anew"
            )


def _explained(miss: Miss, records: Sequence[GraphRecord], here: Mapping[str, GraphRecord]) -> Miss:
    """Say why something would have compiled: how it differs from the nearest graph that is there."""
    if not miss.record:
        return miss
    wanted = codec.decode(miss.record)
    known = [record for record in (*here.values(), *records) if record.is_eager == wanted.is_eager]
    near = nearest(wanted, known)
    if near is None:
        return miss
    said = "; ".join(f"{each.part} {each.detail or f'{each.found} → {each.wanted}'}" for each in near.differences[:3])
    why = f"{miss.why}; against the nearest graph that is compiled: {said or 'nothing differs, its file is gone'}"
    return Miss(key=miss.key, text=miss.text, why=why, job=miss.job, rank=miss.rank, record=miss.record)
