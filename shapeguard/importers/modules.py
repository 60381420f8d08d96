"""Compiles of the torch_xla stack as event lines: a module is a graph, of which only names and outcomes are known."""

from __future__ import annotations

from typing import Any

from shapeguard.core.events import Outcome
from shapeguard.importers.importer import Numbering

PHASE = "train"
"""The stack doesn't tell training from inference."""


def module(numbering: Numbering, number: int, name: str, outcome: Outcome, seconds: float | None = None) -> None:
    """Write a module down: as a region with one graph, whose kind the stack doesn't tell."""
    ended = Outcome.FAILED if outcome is Outcome.FAILED else Outcome.COMPILED
    numbering.compile(PHASE, kind="region", region=number, key=f"region {number}", outcome=ended, nodes=0)
    timed: dict[str, Any] = {"seconds": seconds} if seconds is not None else {}
    numbering.compile(
        PHASE, kind="inference", region=number, key=name, name=name, outcome=outcome, nodes=0, neff=name, **timed
    )
