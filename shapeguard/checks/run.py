"""Runs a job under `shapeguard trace`, in a process of its own, and reads what it wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shapeguard.checks.job import Job
from shapeguard.core.errors import DeviceError, ShapeguardError, UsageError
from shapeguard.lock.observe import Observed, observe
from shapeguard.runs.stream import SUMMARY, read_run
from shapeguard.runs.summary import Summary, summarise
from shapeguard.runs.values import Run
from shapeguard.trace.folder import make

Say = Callable[[str], None]
_LAST_LINES = 25
_LOST = ("cut-off", "broken-line", "recorder")
"""Codes of problems after which what a run shows is not all there was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A job's run, read."""

    job: Job
    folder: Path
    run: Run
    summary: Summary
    observed: Observed

    @property
    def exit_code(self) -> int:
        """The program's own exit code."""
        return self.summary.ended.exit_code or 0

    @property
    def why_partial(self) -> str:
        """Why the run may have missed graphs; empty where it went to its end."""
        ended = self.summary.ended
        if ended.signal:
            return f"the program was ended by {ended.signal}"
        if ended.exit_code:
            return f"the program ended with exit code {ended.exit_code}"
        if ended.exit_code is None:
            return "nobody saw how the program ended"
        lost = next((trouble for trouble in self.summary.troubles if trouble.code in _LOST), None)
        if lost is not None:
            return lost.message
        return "" if self.run.processes else "no process of the program imported torch: nothing was seen"


def run(job: Job, *, say: Say, stream: bool, environment: Mapping[str, str]) -> Ran:
    """Trace a job; what its program prints goes to standard error, where `stream` is set, or where it failed."""
    folder = make(None, name=f"job-{job.name}".replace(os.sep, "-"), root=job.root)
    say(f"{job.name}: tracing {' '.join(job.settings.command)}")
    command = [sys.executable, "-m", "shapeguard", "trace", "-q", "--run-dir", str(folder), *job.options, *job.words]
    env = {**environment, **job.settings.env}
    with tempfile.TemporaryFile() as output:
        target = sys.stderr if stream and sys.stderr is not None else output
        done = subprocess.run(
            command, cwd=job.root, env=env, stdin=subprocess.DEVNULL, stdout=target, stderr=subprocess.STDOUT
        )
        output.seek(0)
        printed = output.read().decode("utf-8", "replace").splitlines()
    if not (folder / SUMMARY).is_file():
        raise _failure(job, done.returncode, printed)
    found = read(job, folder)
    if found.exit_code and not stream:
        own = printed[: _report_start(printed)]
        say("\n".join(f"{job.name} | {line}" for line in own[-_LAST_LINES:]))
    return found


def _report_start(printed: list[str]) -> int:
    """Give the line at which the report of the trace begins, which stands below what the program said last."""
    ends = (
        n for n, line in enumerate(printed) if line.startswith("the program ended with exit code ") and ": " in line
    )
    # A headline and an empty line stand above it.
    return max(next(ends, len(printed) + 2) - 2, 0)


def read(job: Job, folder: Path) -> Ran:
    """Read a run that is there already."""
    found = read_run(folder)
    return Ran(job=job, folder=folder, run=found, summary=summarise(found), observed=observe(found, job.name))


def _failure(job: Job, code: int, printed: list[str]) -> ShapeguardError:
    """Give the error of a trace that could not be made, which `shapeguard trace` has printed."""
    error = next((line for line in printed if line.lower().startswith("error: ")), "")
    hint = next((line.removeprefix("hint: ") for line in printed if line.startswith("hint: ")), "")
    said = error[7:] or (printed[-1] if printed else f"`shapeguard trace` ended with exit code {code}")
    kind = DeviceError if code == 3 else UsageError
    return kind(f"job {job.name!r} could not be traced: {said}", hint=hint or "run it with `shapeguard trace`")
