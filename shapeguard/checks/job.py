"""A job of the configuration: its command as `trace` takes it, and a digest of what decides which graphs it has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from shapeguard.checks.settings import JobSettings
from shapeguard.core.errors import ConfigError, UsageError
from shapeguard.lock.values import LockedJob
from shapeguard.trace.world import world as simulated

_SCRIPTS = (".py", ".pyw", ".pyz")
NONE = "name a command in [tool.shapeguard.jobs.NAME], or let `shapeguard init` write it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is run."""

    name: str
    settings: JobSettings
    root: Path
    """The folder of the configuration, which the command is run in."""

    @property
    def words(self) -> tuple[str, ...]:
        """Give the command as it follows `shapeguard trace`."""
        words = self.settings.command
        if isinstance(self.settings.world, int) and self.settings.world > 1:
            words = words[1:] if words[0] == "--" else words
            return ("--", "torchrun", "--standalone", "--nproc-per-node", str(self.settings.world), *words)
        is_program = words[0] in ("-m", "--") or words[0].endswith(_SCRIPTS)
        return words if is_program or (self.root / words[0]).is_dir() else ("--", *words)

    @property
    def options(self) -> tuple[str, ...]:
        """Give the options of `shapeguard trace`."""
        settings = self.settings
        options = ["--inner", settings.inner, "--target", settings.target]
        options += ["--warmup-steps", str(settings.warmup_steps)]
        if settings.max_steps is not None:
            options += ["--max-steps", str(settings.max_steps)]
        if settings.stub_weights:
            options.append("--stub-weights")
        if isinstance(settings.world, str):
            options += ["--world", settings.world, "--rank", "all"]
        return tuple(options)

    @property
    def locked(self) -> LockedJob:
        """Give what a lock says of the job's settings; the values of variables are only in the digest."""
        settings = self.settings
        said = [
            list(settings.command),
            settings.target,
            settings.world,
            settings.max_steps,
            settings.warmup_steps,
            sorted(settings.env.items()),
        ]
        digest = hashlib.sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:12]
        return LockedJob(settings=digest, target=settings.target, world=processes(settings.world))


def processes(world: int | str) -> int:
    """Give the number of processes: `"tp=2,fsdp=2"` has four."""
    if isinstance(world, int):
        return world
    try:
        return simulated(world, "all").size
    except UsageError as error:
        raise ConfigError(f'world = "{world}" is no world', hint='give a number, or sizes: "tp=2,fsdp=2"') from error


def chosen(names: Iterable[str], known: Mapping[str, JobSettings], *, root: Path, file: str) -> list[Job]:
    """Give the jobs that were asked for, or all, in the order of the configuration."""
    if not known:
        raise ConfigError(f"{file or 'the configuration'} has no jobs", hint=NONE)
    wanted = tuple(names)
    for name in wanted:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise ConfigError(f"there is no job {name!r}", hint=hint)
    found = [Job(name=name, settings=settings, root=root) for name, settings in known.items()]
    return [job for job in found if not wanted or job.name in wanted]
