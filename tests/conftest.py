"""What every part's tests share."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from shapeguard.cli.main import main

# No test fills the cache of whoever runs it.
os.environ.setdefault("SHAPEGUARD_NO_CACHE", "1")

REPOSITORY = Path(__file__).parent.parent
ENVIRONMENT = ("CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "GITHUB_STEP_SUMMARY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Shapeguard = Callable[..., Ran]


@pytest.fixture
def shapeguard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Shapeguard:
    """Run the command line in an empty folder, in this process, and give its exit code and output."""
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)

    def run(*args: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsysbinary.readouterr()
        code = main(list(args))
        out, err = capsysbinary.readouterr()
        return Ran(code=code, out=out.decode(), err=err.decode())

    return run
