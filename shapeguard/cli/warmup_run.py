"""`shapeguard warmup` carried out: options to a place, a plan, a run, a proof, a statement."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from shapeguard.cli.cache_options import cache_folder, progress
from shapeguard.cli.configured import Configs
from shapeguard.cli.jobs import project_of, say
from shapeguard.cli.options import current_output
from shapeguard.core.errors import DeviceError, Exit
from shapeguard.core.finding import Problem
from shapeguard.core.graphs import REAL, SIMULATED
from shapeguard.core.report import Report
from shapeguard.warmup import fetch, statement, view
from shapeguard.warmup.execute import Done, Item, Limits, Listener
from shapeguard.warmup.executor import demand_known
from shapeguard.warmup.journal import alone
from shapeguard.warmup.place import FOLDER, Place
from shapeguard.warmup.plan import Plan, shard_of
from shapeguard.warmup.progress import Progress
from shapeguard.warmup.values import Miss
from shapeguard.warmup.warm import Options, Warmup


def run(configs: Configs, jobs: tuple[str, ...], **options: Any) -> Report:
    """Plan, pull, run and prove."""
    from shapeguard.checks.project import demand_toolchain, here

    _refuse(options)
    place = _place(configs, options, _device(options["device"]))
    project = project_of(configs)
    warmup = Warmup(place, project.jobs(jobs), _settings(options), listener=_listener(options["progress"]))
    demand_toolchain(warmup.lock, here() | _compiler(place), place.lock_file)
    if options["dry_run"]:
        return _dry_run(warmup, place, options)
    place.prepare()
    with alone(place.home / f"lock{place.part}"):
        return _Run(warmup, place, options).report()


def _compiler(place: Place) -> dict[str, str]:
    return {"neuronx-cc": place.compiler} if place.compiler else {}


class _Run:
    """One warm-up."""

    def __init__(self, warmup: Warmup, place: Place, options: dict[str, Any]) -> None:
        self._warmup = warmup
        self._place = place
        self._options = options
        self._statement: Path = options["statement"] or place.home / statement.NAME
        self._problems: list[Problem] = []
        self._notes: list[str] = []

    def report(self) -> Report:
        options, warmup, place = self._options, self._warmup, self._place
        if options["verify"]:
            statement.withdraw(self._statement)
        warmup.gather()
        num_fetched = self._fetch() if options["remote"] else 0
        found = warmup.plan()
        done = warmup.run(found) if options["compiles"] else Done(finished={})
        if options["push"]:
            self._send(frozenset(found.needs))
        misses = None
        if options["verify"]:
            done, misses = self._prove(found, done)
        outcome = view.Outcome(
            plan=found,
            done=done,
            misses=misses,
            problems=tuple(self._problems),
            notes=tuple(self._notes),
            num_fetched=num_fetched,
            compiles=options["compiles"],
            is_simulated=place.device == SIMULATED,
        )
        return view.told(outcome, slots=warmup.slots(len(found.recipes)))

    def _fetch(self) -> int:
        got = fetch.fetch(self._options["remote"], self._place, shows=progress)
        self._problems += got.problems
        return len(got.keys)

    def _send(self, keys: frozenset[str]) -> None:
        read_only = os.environ.get("SHAPEGUARD_REMOTE_READ_ONLY", "") not in ("", "0")
        number, problems = fetch.send(self._options["remote"], self._place, keys, read_only=read_only, shows=progress)
        self._problems += problems
        self._notes.append(f"{number} files sent to {self._options['remote']}")

    def _prove(self, found: Plan, done: Done) -> tuple[Done, tuple[Miss, ...]]:
        """Run the jobs once more, and write down what came of it; the statement last, and only if all is well."""
        proof, misses = self._warmup.prove()
        failures = (*done.failures, *(each for each in proof.failures if not each.misses))
        done = replace(done, failures=failures, left=(*done.left, *proof.left))
        if failures or misses or done.left:
            file = statement.write_failure(self._statement, failures, misses)
            self._notes.append(f"no statement; {_shown(file)} says why")
        elif why := self._why_partial():
            self._notes.append(f"no statement: {why}")
        else:
            here = self._warmup.plan().here.records
            lock, place = self._warmup.lock, self._place
            said = statement.statement(lock, found.needs, here, device=place.device, toolchain=place.toolchain)
            statement.write(self._statement, said)
            self._notes.append(f"statement: {_shown(self._statement)}")
        return done, tuple(misses)

    def _why_partial(self) -> str:
        """Say why a proof is not one of the whole lock."""
        left = sorted(set(self._warmup.lock.jobs) - {job.name for job in self._warmup.jobs})
        return f"it would be of the whole lock, and job {', '.join(left)} was left out" if left else ""


def _dry_run(warmup: Warmup, place: Place, options: dict[str, Any]) -> Report:
    got = fetch.ask(options["remote"], place) if options["remote"] else fetch.Fetched()
    found = warmup.plan(fetched=got.keys)
    return view.planned(
        found,
        slots=warmup.slots(len(found.recipes)),
        num_bytes=got.num_bytes,
        problems=got.problems,
        simulated=place.device == SIMULATED,
    )


def check_statement(configs: Configs, file: Path, **options: Any) -> Report:
    """Say whether a statement holds for this lock, toolchain and device."""
    if options["verify"] or options["dry_run"] or options["remote"]:
        raise click.UsageError("--check runs nothing: it cannot stand beside --verify, --dry-run or --remote.")
    # Without a word about it a deploy is one to hardware.
    device = SIMULATED if options["device"] == "sim" else REAL
    place = _place(configs, options, device)
    said = statement.read(file)
    refused = list(
        statement.refusals(said, place.lock(), device=device, toolchain=place.toolchain, neff_dir=options["neff_dir"])
    )
    problems = tuple(Problem(path=_shown(file), message=each) for each in refused)
    holds = f"{_shown(file)} holds: {said.num_graphs} graphs, {said.num_eager} eager signatures, 0 misses"
    return Report(
        tool="warmup",
        problems=problems,
        document={"schema": 1, "statement": _shown(file), "holds": not refused, "refused": refused},
        summary=(f"{_shown(file)} does not hold here" if refused else holds,),
        exit_code=Exit.FINDINGS if refused else Exit.CLEAN,
    )


def _refuse(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if options["push"] and not options["remote"]:
        raise click.UsageError("--push needs --remote URL.")
    demand_known(options["executor"])
    if options["dry_run"] and options["verify"]:
        raise click.UsageError("--dry-run cannot stand beside --verify.")


def _device(wanted: str) -> str:
    """Settle which device it is: Neuron where there is one, unless the simulated one is asked for."""
    from shapeguard.trace.probe import device_nodes, installed

    if wanted == "sim":
        return SIMULATED
    found = installed(sys.executable)
    has_device = found is not None and bool(found.neuron) and device_nodes()
    if wanted == "neuron" and not has_device:
        raise DeviceError(
            "there is no Neuron device with torch_neuronx here", hint="use --device sim, or see `shapeguard doctor`"
        )
    return REAL if has_device else SIMULATED


def _place(configs: Configs, options: dict[str, Any], device: str) -> Place:
    project = project_of(configs)
    # The simulated device's stand-ins do not go where the Neuron stack looks, unless that is said.
    default = project.root / ".shapeguard" / "neffs" if device == SIMULATED else Path("/tmp/neff_cache")
    given = options["neff_dir"] or os.environ.get(FOLDER, "")
    return Place(
        root=project.root,
        lock_file=options["lock_file"] or project.lock_file,
        neff_dir=Path(given).absolute() if given else default,
        cache_dir=cache_folder(configs, options["cache_dir"]).absolute(),
        device=device,
        environment=dict(os.environ),
        part=shard_of(options["shard"]).part,
    )


def _settings(options: dict[str, Any]) -> Options:
    return Options(
        slots=options["at_once"],
        max_memory=options["max_memory"] or 0,
        limits=Limits(
            timeout_s=options["timeout"] or 0.0, retries=options["retries"], is_fail_fast=not options["keep_going"]
        ),
        order=options["order"],
        shard=shard_of(options["shard"]),
        executor=options["executor"],
        cores=options["neuron_cores"] or 0,
        speed=options["sim_speed"],
        is_resumed=options["resume"],
    )


def _listener(wanted: bool | None) -> Callable[[Sequence[Item], int], Listener]:
    is_shown = sys.stderr.isatty() and not current_output().quiet if wanted is None else wanted
    return (lambda items, slots: Progress(items, slots, say)) if is_shown else (lambda items, slots: Listener())


def _shown(path: Path) -> str:
    inside = os.path.relpath(path)
    return str(path) if inside.startswith("..") else inside
