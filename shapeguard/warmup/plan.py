"""The plan of a warm-up: what is missing here, and the fewest recipes that make it compile. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shapeguard.checks.job import Job
from shapeguard.core.errors import UsageError
from shapeguard.lock.values import Lock
from shapeguard.warmup.cover import cover
from shapeguard.warmup.estimate import Estimate, Estimator, makespan_s
from shapeguard.warmup.present import Here
from shapeguard.warmup.values import Need, Recipe, needs

LOCK, COST = "lock", "cost"
ORDERS = (LOCK, COST)
_SIZES = re.compile(r"\S+ (\d+(?:×\d+)*) \w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One part of several, for machines that know nothing of each other."""

    index: int = 1
    number: int = 1

    def __str__(self) -> str:
        return f"{self.index}/{self.number}"

    @property
    def part(self) -> str:
        """Give what names of its own files end with."""
        return f"-{self.index}-of-{self.number}" if self.number > 1 else ""


def shard_of(text: str) -> Shard:
    """Read `I/N`."""
    match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text}: no part", hint="write I/N, the first of four parts is 1/4")
    return Shard(index=int(match[1]), number=int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A recipe that is to be run."""

    recipe: Recipe
    missing: frozenset[str]
    """What it is run for."""
    seconds: Estimate
    size_bytes: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done."""

    needs: Mapping[str, Need]
    """All that the lock needs."""
    here: Here
    fetched: frozenset[str] = frozenset()
    """What a remote has."""
    recipes: tuple[Planned, ...] = ()
    """In the order in which they are begun."""
    is_exact: bool = True
    at_least: int = 0
    uncovered: tuple[str, ...] = ()
    """Missing graphs that no job of the configuration needs."""
    shard: Shard = field(default_factory=Shard)
    elsewhere: frozenset[str] = frozenset()
    """Missing graphs that are left to other shards."""

    @property
    def missing(self) -> frozenset[str]:
        """What is neither here nor in the remote."""
        return frozenset(self.here.why) - self.fetched

    @property
    def seconds(self) -> Estimate:
        """Compile time of what is missing, one graph after the other."""
        return sum((each.seconds for each in self.recipes), Estimate())

    @property
    def size_bytes(self) -> Estimate:
        """Bytes of the files that are missing."""
        return sum((each.size_bytes for each in self.recipes), Estimate())

    def wall_s(self, slots: int) -> float | None:
        """Give the time with so many workers; None where nothing is known."""
        known = {each.recipe.name: each.seconds.total or 0.0 for each in self.recipes}
        return makespan_s(known, slots) if self.seconds.total is not None else None


def recipes(lock: Lock, jobs: Iterable[Job]) -> list[Recipe]:
    """Give the recipes there are: a job each, with what the lock says that it needs."""
    found = []
    for job in jobs:
        keys = needs(lock, [job.name])
        if keys:
            found.append(Recipe(job=job, keys=frozenset(keys), size=_size(keys.values())))
    return found


def _size(found: Iterable[Need]) -> str:
    """Give the sizes of the input that are the most numbers."""
    texts = [match[1] for need in found for row in need.inputs if (match := _SIZES.match(row))]
    return max(texts, key=lambda text: (_volume(text), text), default="")


def _volume(sizes: str) -> int:
    volume = 1
    for each in sizes.split("×"):
        volume *= int(each)
    return volume


def plan(
    lock: Lock,
    jobs: Sequence[Job],
    here: Here,
    *,
    estimator: Estimator,
    fetched: frozenset[str] = frozenset(),
    shard: Shard | None = None,
    order: str = COST,
) -> Plan:
    """Choose the fewest recipes that cover what is missing; of a shard, those that fall to it.

    Shards must not depend on what is here: every machine cuts the whole lock alike, and leaves out what it has.
    """
    shard = shard or Shard()
    wanted = needs(lock, [job.name for job in jobs])
    missing = frozenset(here.why) - fetched
    found = {recipe.name: recipe for recipe in recipes(lock, jobs)}
    sets = {name: recipe.keys for name, recipe in found.items()}
    costs = {name: estimator.seconds(wanted[key] for key in sets[name] & missing).total or 0.0 for name in sets}
    base = frozenset(wanted) if shard.number > 1 else missing
    chosen = cover(base, sets, costs if shard.number == 1 else {name: float(len(sets[name])) for name in sets})
    ours = _share(chosen.names, sets, wanted, shard)
    planned = _assigned([found[name] for name in ours], missing, wanted, estimator)
    of_ours = frozenset().union(*(each.missing for each in planned))
    return Plan(
        needs=wanted,
        here=here,
        fetched=fetched,
        recipes=tuple(_ordered(planned, lock, order)),
        is_exact=chosen.is_exact,
        at_least=chosen.at_least,
        uncovered=tuple(sorted(chosen.uncovered & missing)),
        shard=shard,
        elsewhere=missing - of_ours - chosen.uncovered if shard.number > 1 else frozenset(),
    )


def _share(
    names: Sequence[str], sets: Mapping[str, frozenset[str]], wanted: Mapping[str, Need], shard: Shard
) -> list[str]:
    """Give the recipes of one shard: the longest first, each to the part that has least."""
    if shard.number == 1:
        return list(names)
    blank = Estimator((), device="")
    cost = {name: blank.seconds(wanted[key] for key in sets[name]).total or 0.0 for name in names}
    loads = [0.0] * shard.number
    ours = []
    for name in sorted(names, key=lambda each: (-cost[each], each)):
        part = loads.index(min(loads))
        loads[part] += cost[name]
        if part == shard.index - 1:
            ours.append(name)
    return ours


def _assigned(
    chosen: Sequence[Recipe], missing: frozenset[str], wanted: Mapping[str, Need], estimator: Estimator
) -> list[Planned]:
    """Say what each recipe is run for; what two have counts for the first, the other finds it on disk."""
    planned, counted = [], set[str]()
    for recipe in sorted(chosen, key=lambda each: (-len(each.keys & missing), each.name)):
        keys = recipe.keys & missing
        new = [wanted[key] for key in sorted(keys - counted)]
        counted |= keys
        if keys:
            planned.append(
                Planned(
                    recipe=recipe,
                    missing=keys,
                    seconds=estimator.seconds(new),
                    size_bytes=estimator.size_bytes(new),
                )
            )
    return planned


def _ordered(planned: Sequence[Planned], lock: Lock, order: str) -> list[Planned]:
    place = {name: index for index, name in enumerate(lock.jobs)}
    if order == LOCK:
        return sorted(planned, key=lambda each: place[each.recipe.name])
    return sorted(planned, key=lambda each: (-(each.seconds.total or 0.0), place[each.recipe.name]))
