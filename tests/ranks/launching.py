"""Runs programs of several ranks as a user does: with torchrun, or in a simulated world."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent.parent.parent / "fixtures" / "ranks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run of several ranks left."""

    code: int
    out: str
    report: str
    folder: Path
    summary: dict[str, Any]

    def graphs(self, rank: int) -> dict[str, str]:
        """Give the full text of a rank's graphs by key."""
        return {path.stem: path.read_text() for path in (self.folder / "graphs" / f"rank-{rank}").glob("*.txt")}


def torchrun(folder: Path, program: str, *words: str, ranks: int, options: tuple[str, ...] = (), **env: str) -> Ran:
    """Trace a program of `fixtures/ranks` with so many processes."""
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    return _trace(folder, (*options, "--", *launch, str(PROGRAMS / program), *words), env)


def world(
    folder: Path, program: str, *words: str, sizes: str, rank: str = "all", options: tuple[str, ...] = (), **env: str
) -> Ran:
    """Trace a program of `fixtures/ranks` in a world that is not there."""
    return _trace(folder, (*options, "--world", sizes, "--rank", rank, str(PROGRAMS / program), *words), env)


def _trace(folder: Path, words: tuple[str, ...], env: dict[str, str]) -> Ran:
    run = folder / "run"
    command = [sys.executable, "-m", "shapeguard", "trace", "--run-dir", str(run), *words]
    quiet = {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "SHAPEGUARD_NO_CACHE": "1", "SHAPEGUARD_KEEP_GRAPHS": "1"}
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **quiet, **env}, capture_output=True, text=True, timeout=500
    )
    summary = run / "summary.json"
    assert summary.is_file(), done.stderr[-3000:]
    return Ran(
        code=done.returncode,
        out=done.stdout,
        report=done.stderr,
        folder=run,
        summary=json.loads(summary.read_text()),
    )


def plain(program: str, *words: str) -> str:
    """Give the output of a program run by itself, untraced, on the host."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAMS / program), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=300).stdout
