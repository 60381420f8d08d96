"""Runs the runners as a user does, with small models made from configurations and a tokenizer of the fixture's text."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent.parent
TEXT = REPOSITORY / "fixtures" / "texts" / "harbour.txt"
sys.path.insert(0, str(REPOSITORY / "fixtures" / "scripts"))
import tiny  # noqa: E402 - found by the path above

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "SHAPEGUARD_NO_CACHE": "1", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a runner did."""

    code: int
    out: str
    err: str
    run: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Give the JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        """Give the summary of the traced run."""
        found: dict[str, Any] = json.loads((self.run / "summary.json").read_text(encoding="utf-8"))
        return found

    def steps(self, name: str = "loss") -> dict[int, float]:
        """Give a figure of the log by step."""
        return {row["step"]: row[name] for row in self.rows if name in row}


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a runner."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "SHAPEGUARD_LOCKED")}
    return {**kept, **ENVIRONMENT, **more}


def run(folder: Path, *words: str, name: str = "run", stdin: bytes = b"", **environ: str) -> Done:
    """Run `shapeguard run …` in a folder, with `folder/NAME` as the folder of the run."""
    command = [sys.executable, "-m", "shapeguard", "run", *words, "--run-dir", name]
    done = subprocess.run(
        command, cwd=folder, env=environment(**environ), input=stdin, capture_output=True, timeout=900
    )
    return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), run=folder / name)


def language_model(folder: Path, *, layers: int = 1) -> str:
    """Save a causal language model with its tokenizer; give the folder's name."""
    tiny.llama(layers=layers).save_pretrained(folder / "lm")
    tiny.tokenizer().save_pretrained(folder / "lm")
    return "lm"


def prompts(number: int, *, longest: int, seed: int = 0) -> list[str]:
    """Give prompts of random length in random order."""
    chance = random.Random(seed)
    words = TEXT.read_text(encoding="utf-8").split()
    # Punctuation is a token of its own.
    plain = [word.strip(".,;:") for word in words if word.strip(".,;:").isalpha()]
    return [" ".join(chance.choices(plain, k=chance.randint(1, longest))) for _ in range(number)]


def write_lines(path: Path, rows: Sequence[Any]) -> str:
    """Write JSON lines; give the file's name."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.name


def events(folder: Path) -> list[dict[str, Any]]:
    """Give the event lines of a run."""
    lines = [line for path in sorted(folder.glob("rank-*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]
