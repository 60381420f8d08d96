"""Recipes as things to run: the work that is sent to a worker, and what is done with what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from shapeguard.cache.neff_place import place as put_in_place
from shapeguard.cache.store import GraphCache
from shapeguard.checks.job import processes
from shapeguard.checks.project import demand_toolchain
from shapeguard.core.errors import LockError, ShapeguardError
from shapeguard.core.forbid import VARIABLE
from shapeguard.core.graphs import SIMULATED, GraphRecord
from shapeguard.lock.values import Lock
from shapeguard.warmup.execute import Item
from shapeguard.warmup.place import FOLDER, Place, decoded, forget
from shapeguard.warmup.plan import Planned
from shapeguard.warmup.present import Here, compiler_of
from shapeguard.warmup.values import Need, Recipe, Result, Work

LOCKS = "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR"
_SPEED = "SHAPEGUARD_SIM_SPEED"


class Maker:
    """Makes items of recipes."""

    def __init__(
        self, place: Place, lock: Lock, needs: Mapping[str, Need], here: Here, *, speed: float, timeout_s: float
    ) -> None:
        self._place = place
        self._lock = lock
        self._needs = needs
        self._here = here
        self._speed = speed
        self._timeout_s = timeout_s

    def warming(self, planned: Planned, cache: GraphCache, *, expected_s: float | None) -> Item:
        """Give a recipe that is run to have its missing graphs compiled."""
        recipe = planned.recipe
        # Ranks must end at one step, and each has seen other graphs: only a single process ends early.
        is_alone = processes(recipe.job.settings.world) == 1
        until = tuple(sorted(planned.missing)) if is_alone else ()

        def keep(result: Result) -> str:
            records = self._taken(result)
            cache.put_many(records)
            wrong = self._lacking(planned, records, result)
            if not wrong:
                forget(self._place.runs / result.id)
            return wrong

        return Item(
            name=recipe.name,
            label=recipe.label,
            expected_s=expected_s,
            cores=processes(recipe.job.settings.world),
            work=self._work(recipe, until=until, environment={}),
            keep=keep,
        )

    def proving(self, recipe: Recipe) -> Item:
        """Give a recipe that is run to its end while compiling is forbidden."""

        def keep(result: Result) -> str:
            forget(self._place.runs / result.id)
            return _drift(self._lock, result, self._place)

        return Item(
            name=recipe.name,
            label=f"verify {recipe.label}",
            expected_s=None,
            cores=processes(recipe.job.settings.world),
            work=self._work(recipe, until=(), environment={VARIABLE: "1", _SPEED: ""}),
            keep=keep,
        )

    def _work(self, recipe: Recipe, *, until: tuple[str, ...], environment: Mapping[str, str]) -> Callable[[int], Work]:
        job, settings, place = recipe.job, recipe.job.settings, self._place
        locks = settings.env.get(LOCKS) or place.environment.get(LOCKS) or str(place.home)
        ours = {FOLDER: str(place.neff_dir), LOCKS: locks, _SPEED: f"{self._speed:g}", VARIABLE: ""}
        env = {**settings.env, **ours, **environment}
        plain: dict[str, str | int | bool | None] = {
            "device": "sim" if place.device == SIMULATED else "neuron",
            "inner": settings.inner,
            "target": settings.target,
            "stub_weights": settings.stub_weights,
            "max_steps": settings.max_steps,
            "warmup_steps": settings.warmup_steps,
        }
        name = _file_name(job.name)

        def work(number: int) -> Work:
            folder = place.runs / f"{name}-{number}"
            forget(folder)
            return Work(
                id=folder.name,
                job=job.name,
                words=job.words,
                root=str(job.root),
                folder=str(folder),
                neff_dir=str(place.neff_dir),
                env=env,
                settings=plain,
                world=settings.world if isinstance(settings.world, str) else "",
                until=until,
                files=self._files(recipe),
                cores=processes(settings.world),
                timeout_s=self._timeout_s,
            )

        return work

    def _files(self, recipe: Recipe) -> tuple[str, ...]:
        records = (self._here.records[key] for key in recipe.keys if key in self._here.records)
        return tuple(sorted({record.neff.path for record in records if record.neff is not None}))

    def _taken(self, result: Result) -> list[GraphRecord]:
        """Give the records of a result, once the files that came with them are in place."""
        records = decoded(result.records)
        for record in records:
            neff = record.neff
            data = result.neffs.get(neff.path) if neff is not None else None
            if neff is None or data is None:
                continue
            if (len(data), hashlib.sha256(data).hexdigest()) != (neff.size_bytes, neff.digest):
                raise ShapeguardError(f"{neff.path} came from a worker with another digest than it said")
            scratch = self._place.runs / f".{neff.digest}"
            scratch.write_bytes(data)
            try:
                put_in_place(neff, scratch, self._place.neff_dir)
            finally:
                scratch.unlink(missing_ok=True)
        return records

    def _lacking(self, planned: Planned, records: list[GraphRecord], result: Result) -> str:
        """Say what a recipe should have compiled and has not."""
        if result.exit_code or result.why:
            return ""
        compiled = {record.key.graph for record in records if compiler_of(record) == self._place.compiler}
        left = sorted(planned.missing - compiled)
        if not left:
            return ""
        if drift := _drift(self._lock, result, self._place):
            return drift
        shown = "; ".join(self._needs[key].text for key in left[:3]) + (f" and {len(left) - 3} more" * (len(left) > 3))
        if set(left) <= set(result.seen):
            return (
                f"it compiled, but left no file in {self._place.neff_dir} of {shown}: is the cache on disk turned off?"
            )
        return f"{len(left)} of the graphs that the lock says it has did not come: {shown}; run `shapeguard lock`"


def _drift(lock: Lock, result: Result, place: Place) -> str:
    try:
        demand_toolchain(lock, result.toolchain, place.lock_file)
    except LockError as error:
        return error.message
    return ""


def _file_name(text: str) -> str:
    """Give a job's name as that of a file."""
    plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in text)
    if plain == text and not text.startswith("."):
        return text
    return f"{plain.lstrip('.')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
