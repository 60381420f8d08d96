"""What is wrong with a job's settings though each value has the right type; told before anything is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches

from shapeguard.checks.job import processes
from shapeguard.checks.settings import JobSettings
from shapeguard.core.errors import ConfigError

DRIFT = ("new", "unused")
"""Levels that are no limits: graphs that the lock does not have, and graphs of it that were not seen."""
LIMITS = ("graphs", "eager", "after-warmup", "compile-minutes", "fallbacks")
_LONGEST_NAME = 100

Fault = tuple[str, str, str]
"""The dotted key at fault, what is wrong with it, and what to do."""


def faults(job: str, settings: JobSettings) -> Iterator[Fault]:
    """Give what is wrong with a job, the gravest first."""
    yield from _name(job)
    yield from _command(job, settings)
    yield from _world(job, settings)
    yield from _limits(job, settings)


def _name(job: str) -> Iterator[Fault]:
    """A name stands on command lines, in `--run NAME=RUN` and in messages."""
    where = f'jobs."{job}"'
    if job == "merge":
        yield where, "a job cannot be called merge", "`shapeguard lock merge` is git's merge driver"
    elif not job.strip() or not job.isprintable() or job.startswith("-") or "=" in job or len(job) > _LONGEST_NAME:
        said = f"{job[:40]!r} is no name for a job"
        yield where, said, "use letters, digits, `-` and `_`, such as train-small"


def _command(job: str, settings: JobSettings) -> Iterator[Fault]:
    where = f'jobs."{job}".command'
    if not settings.command[0].strip() or settings.command == ("--",):
        yield where, f"{where} names no program", 'write the words of the command, such as ["train.py", "--steps", "8"]'
    elif any("\0" in word for word in settings.command):
        yield where, f"{where} holds a NUL character, which no command can take", "remove it"
    for name, value in settings.env.items():
        if not name or "=" in name or "\0" in name + value:
            key = f'jobs."{job}".env'
            yield key, f"{key}: {name!r} cannot be set as a variable", "a name has no `=`, and neither has a NUL"


def _world(job: str, settings: JobSettings) -> Iterator[Fault]:
    try:
        processes(settings.world)
    except ConfigError as error:
        where = f'jobs."{job}".world'
        yield where, f"{where}: {error.message}", error.hint


def _limits(job: str, settings: JobSettings) -> Iterator[Fault]:
    budget = f'jobs."{job}".budget'
    known = (*LIMITS, *(part.name for part in settings.budget.match))
    for name in settings.budget.levels:
        yield from _unknown(f'{budget}.levels."{name}"', f"{budget}.levels", name, (*known, *DRIFT))
    for number, waiver in enumerate(settings.waivers, 1):
        yield from _unknown(f'jobs."{job}".waivers[{number}].limit', f'jobs."{job}".waivers', waiver.limit, known)
    for limit, times in Counter(waiver.limit for waiver in settings.waivers).items():
        if times > 1:
            where = f'jobs."{job}".waivers'
            yield where, f"{where} has {times} waivers of {limit!r}", "one limit has one waiver: join them"
    for number, part in enumerate(settings.budget.match, 1):
        where = f"{budget}.match[{number}]"
        if part.graphs is None and part.shapes is None:
            yield where, f"{budget}.match of {part.name!r} has no limit", "add `graphs` or `shapes`"
        if part.shapes is not None and not part.input:
            yield where, f"{budget}.match: `shapes` needs an `input`", 'such as input = "input_ids"'


def _unknown(where: str, shown: str, name: str, known: tuple[str, ...]) -> Iterator[Fault]:
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
        yield where, f"{shown} names {name!r}, which is no limit", hint
