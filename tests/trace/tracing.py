"""Runs `shapeguard trace` as a user does: in a process of its own, from the folder of the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent.parent
SCRIPTS = REPOSITORY / "fixtures" / "scripts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """What a trace left."""

    code: int
    out: str
    report: str
    summary: dict[str, Any]


def trace(folder: Path, program: Path | str, *options: str, words: tuple[str, ...] = (), **environ: str) -> Traced:
    """Trace a program (a file or a text) with `folder/run` as its run folder."""
    if isinstance(program, str):
        path = folder / "program.py"
        path.write_text(program)
        program = path
    command = [sys.executable, "-m", "shapeguard", "trace", "--run-dir", str(folder / "run"), *options]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "SHAPEGUARD_NO_CACHE": "1", **environ}
    done = subprocess.run(
        [*command, str(program), *words], cwd=folder, env=env, capture_output=True, text=True, timeout=600
    )
    summary = folder / "run" / "summary.json"
    assert summary.is_file(), done.stderr[-3000:]
    return Traced(code=done.returncode, out=done.stdout, report=done.stderr, summary=json.loads(summary.read_text()))
