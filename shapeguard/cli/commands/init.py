"""`shapeguard init`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import Report, Text

if TYPE_CHECKING:
    from shapeguard.checks.start import Plan


@click.command(short_help="Write configuration, hook and CI workflow for this project.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--dry-run", is_flag=True, help="Write nothing; print what would be written.")
@click.option(
    "--package",
    default="shapeguard",
    show_default=True,
    help="What the workflow installs: a name, a wheel, or an address that pip knows.",
)
@report_options
def command(yes: bool, dry_run: bool, package: str) -> Report:
    """Write what a project needs to lint, lock and check: jobs, a pre-commit hook, a GitHub workflow.

    Nothing is overwritten: what is there stays, and what to add to it is printed.
    """
    from shapeguard.checks.start import plan, programs
    from shapeguard.config.load import in_folder, load

    root = Path.cwd()
    config = in_folder(root)
    has_jobs = config is not None and bool(load(config, root=root).settings.jobs)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    scripts = [] if has_jobs else programs(root)
    if scripts and not (yes or dry_run):
        scripts = _chosen(scripts)
    wanted = plan(root, config=config, has_jobs=has_jobs, scripts=scripts, package=package, python=python)
    if not dry_run:
        _write(root, wanted, yes=yes)
    return _report(wanted, is_dry=dry_run, has_jobs=has_jobs)


def _chosen(scripts: Sequence[str]) -> list[str]:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("there is nobody to ask", hint="use --yes, which takes every program found, or --dry-run")
    return [script for script in scripts if click.confirm(f"trace {script} as a job?", default=True, err=True)]


def _write(root: Path, wanted: Plan, *, yes: bool) -> None:
    done: list[str] = []
    for file in wanted.files:
        if not yes and not click.confirm(
            f"{'add to' if file.is_added else 'write'} {file.path}?", default=True, err=True
        ):
            continue
        path = root / file.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # "x": a file that has come up since is not overwritten either.
            with path.open("a" if file.is_added else "x", encoding="utf-8", newline="\n") as stream:
                stream.write(file.text)
        except OSError as error:
            hint = f"written before: {', '.join(done)}" if done else "nothing was written"
            raise UsageError(f"cannot write {file.path}: {error.strerror or error}", hint=hint) from error
        done.append(file.path)


def _report(wanted: Plan, *, is_dry: bool, has_jobs: bool) -> Report:
    from shapeguard.checks.start import MERGE_DRIVER

    verb = "would write" if is_dry else "wrote"
    lines = [f"{'would add to' if is_dry else 'added to'} {f.path}" if f.is_added else f"{verb} {f.path}"
             for f in wanted.files]  # fmt: skip
    lines += [f"kept {text}" for text in wanted.kept]
    if is_dry:
        lines += [f"\n--- {file.path}\n{file.text}" for file in wanted.files]
    steps = ["next:"]
    if not (has_jobs or wanted.jobs):
        steps.append("  name a program in the configuration: none was found that imports torch and has a main part")
    steps += [
        "  shapeguard lock          # traces the jobs; commit shapeguard.lock",
        "  shapeguard check         # what CI will run",
        f"  {MERGE_DRIVER}",
    ]
    return Report(
        tool="init",
        sections=(Text(text="\n".join(lines)),),
        document={
            "schema": 1,
            "written": [] if is_dry else [file.path for file in wanted.files],
            "planned": [file.path for file in wanted.files],
            "kept": list(wanted.kept),
            "jobs": list(wanted.jobs),
        },
        summary=tuple(steps),
    )
