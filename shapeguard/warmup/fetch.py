"""Pull first: what a remote has of a lock needs no compiler. What cannot be fetched is said and compiled here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from shapeguard.cache.manifest import Entry
from shapeguard.cache.named import named
from shapeguard.cache.pull import PullPlan, plan_pull, pull
from shapeguard.cache.push import plan_push, push
from shapeguard.cache.remote import open_remote
from shapeguard.cache.store import GraphCache
from shapeguard.cache.transfer import Progress
from shapeguard.core.errors import CacheError
from shapeguard.core.finding import Problem
from shapeguard.warmup.place import Place

Shows = Callable[[str], Progress]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a remote gave, or would give."""

    keys: frozenset[str] = frozenset()
    """Graphs whose files it has."""
    num_bytes: int = 0
    problems: tuple[Problem, ...] = ()


def ask(url: str, place: Place) -> Fetched:
    """Say what a remote would give."""
    remote = open_remote(url, read_only=True)
    with GraphCache(place.cache_dir, for_reading=True) as cache:
        plan = plan_pull(remote, cache, lock=named(place.lock_file), neff_dir=place.neff_dir)
    keys = frozenset(entry.graph for entry in plan.entries if entry.neff is not None)
    return Fetched(keys=keys, num_bytes=plan.num_bytes, problems=tuple(_manifests(plan)))


def fetch(url: str, place: Place, *, shows: Shows) -> Fetched:
    """Fetch what a remote has of the lock, every digest checked; one bad object does not keep the others back."""
    remote = open_remote(url, read_only=True)
    with GraphCache(place.cache_dir) as cache:
        plan = plan_pull(remote, cache, lock=named(place.lock_file), neff_dir=place.neff_dir)
        problems = _manifests(plan)
        try:
            pull(plan, remote, cache, neff_dir=place.neff_dir, progress=shows("fetched"))
            return Fetched(keys=_keys(plan.entries), num_bytes=plan.num_bytes, problems=tuple(problems))
        except CacheError as error:
            if len(plan.entries) == 1:
                return Fetched(problems=(*problems, _problem(plan.entries[0], error)))
        got: list[Entry] = []
        for entry in plan.entries:
            try:
                pull(replace(plan, entries=(entry,)), remote, cache, neff_dir=place.neff_dir)
                got.append(entry)
            except CacheError as error:
                problems.append(_problem(entry, error))
    return Fetched(keys=_keys(got), problems=tuple(problems))


def send(url: str, place: Place, keys: frozenset[str], *, read_only: bool, shows: Shows) -> tuple[int, list[Problem]]:
    """Send the records and files of the lock's graphs; gives how many files are new there."""
    remote = open_remote(url, read_only=read_only)
    records = [record for record in place.records() if record.key.graph in keys]
    plan = plan_push(records, remote, lock=named(place.lock_file), neff_dir=place.neff_dir)
    troubles = push(plan, remote, progress=shows("sent"))
    return plan.num_neffs, [Problem(path=name, message=said) for name, said in troubles]


def _keys(entries: tuple[Entry, ...] | list[Entry]) -> frozenset[str]:
    return frozenset(entry.graph for entry in entries if entry.neff is not None)


def _manifests(plan: PullPlan) -> list[Problem]:
    return [Problem(path=name, message=said) for name, said in plan.troubles]


def _problem(entry: Entry, error: CacheError) -> Problem:
    where = entry.neff.path if entry.neff is not None else entry.graph[:12]
    return Problem(path=Path(where).as_posix(), message=f"was not fetched: {error}")
