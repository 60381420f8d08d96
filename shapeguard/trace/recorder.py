"""Writes down what one process does: an append-only file of event lines, with step, phase and the user's line."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from shapeguard.core import events
from shapeguard.trace.sites import Sites
from shapeguard.trace.sources import made_at

_MARKS = ("mark_dynamic", "maybe_mark_dynamic", "mark_unbacked", "compile(dynamic=True)")
"""Calls that make a size dynamic."""
_PIECE = re.compile(r"torch_dynamo_resume_in_(\w+?)_at_\d+")
"""How Dynamo names what comes after a break."""
_NUMBER = re.compile(r" == -?(?:\d[\d.e+-]*|inf|nan)$")
TRAIN, EVAL, GENERATE = "train", "eval", "generate"


class Recorder:
    """The sink of a traced process. Nothing it does may raise into the program, or change what it computes."""

    def __init__(self, folder: Path, *, rank: int, sites: Sites, start: Mapping[str, Any]) -> None:
        self.folder = folder
        self.rank = rank
        self.sites = sites
        self.step = 0
        self.phase = TRAIN
        self.phase_steps: dict[str, int] = {}
        self.owners: list[dict[str, Any]] = []
        """Lines that own the shapes of what runs now: the loader and collator of the last batch, moves of inputs."""
        self.stopped = False
        """Whether the run was ended after the number of steps that was asked for."""
        self.model = ""
        """Class of the model whose forward runs or ran last."""
        self.model_facts: Mapping[str, Any] = {}
        """Digest of its configuration, size of its tensor parallelism."""
        self.instance = 0
        """Which model that is, from 1 in the order of first forwards: two of one class are two."""
        self.reads: set[tuple[str, str]] = set()
        """Functions, by file and name, that read values of tensors: what is baked into their pieces stays unsaid."""
        self.awaited: set[str] = set()
        """Keys of graphs that the program is run for and that have not come yet."""
        self.on_region: Callable[[bool | None], None] = lambda is_training: None
        self._start = dict(start)
        self._file = -1
        self._pid = -1
        self._count = 0
        self._lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        path = self.folder / f"rank-{self.rank}.pid-{self._pid}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._write({"type": "start", "schema": events.SCHEMA, "pid": self._pid, "rank": self.rank, **self._start})

    def _write(self, event: Mapping[str, Any]) -> None:
        row = {"step": self.step, "phase": self.phase, "phase_step": self.phase_steps.get(self.phase, 0), **event}
        # One write a line: lines of a process that is killed are whole, but for the last.
        os.write(self._file, events.line(row).encode())

    def emit(self, event: Mapping[str, Any]) -> None:
        """Write one event with step, phase and site; a mistake of ours is written down, for the program comes first."""
        with self._lock:
            if os.getpid() != self._pid:
                self._after_fork()
            try:
                row = self._complete(dict(event))
            except Exception as error:
                row = {"type": "problem", "code": "recorder", "message": f"an event was lost: {error!r}"}
            with contextlib.suppress(OSError):
                self._write(row)
            if event.get("outcome") != events.Outcome.FAILED:
                self.awaited.discard(event.get("key", ""))

    def _after_fork(self) -> None:
        # The child's first event opens a file of its own; a worker that never compiles leaves none.
        os.close(self._file)
        self._count = 0
        self._start["forked"] = True
        self._open()

    def _complete(self, event: dict[str, Any]) -> dict[str, Any]:
        if event["type"] == "compile":
            self._count += 1
            code = event.pop("code_object", None)
            if isinstance(code, CodeType):
                event["code"] = self._code(code)
                self._hide_values(event)
            stack = self.sites.stack()
            owners = [*event.pop("origins", []), *self.owners]
            if stack:
                # A move on the line itself tells nothing new.
                here = (stack[-1]["file"], stack[-1]["line"])
                owners = [each for each in owners if each["role"] != "move" or (each["file"], each["line"]) != here]
            if event.get("outcome") == events.Outcome.FAILED and (marked := made_at(self.sites, *_MARKS)):
                owners.append({"role": "dynamic", **marked})
            event.update(n=self._count, stack=stack, model=self.model, **self.model_facts)
            if event["kind"] == "eager" and self.instance:
                event["instance"] = self.instance
            if owners:
                event["owners"] = owners
            if stack:
                event["site"] = stack[-1]
        elif event["type"] in ("fallback", "problem") and "site" not in event:
            site = self.sites.innermost()
            if site is not None:
                event["site"] = site
        return event

    def _code(self, code: CodeType) -> dict[str, Any]:
        # Where Dynamo compiles `model.__call__`, all models share torch's code object; the model tells them apart.
        if code.co_name == "__call__" and not self.sites.is_users(code):
            return {"file": "torch/nn/modules/module.py", "line": 0, "function": f"{self.model}.__call__"}
        return self.sites.of_code(code)

    def _hide_values(self, event: dict[str, Any]) -> None:
        """Take out what `.item()` gave: after it, values of tensors are Python numbers that guards look at."""
        piece = _PIECE.fullmatch(event["code"]["function"])
        if piece is None or (event["code"]["file"], piece[1]) not in self.reads:
            return
        event["guard"] = _NUMBER.sub(" == …", str(event.get("guard") or ""))
        event["constants"] = [
            row for row in event.get("constants") or () if not _NUMBER.fullmatch(f" == {row['value']}")
        ]

    def site(self) -> dict[str, Any] | None:
        """Give the user's innermost line, for facts that are written down later."""
        return self.sites.innermost()

    def region_begins(self, is_training: bool | None) -> None:
        """Let the steps know of a region outside of any module."""
        self.on_region(is_training)

    def begin_step(self, phase: str) -> None:
        """Begin a step of a phase."""
        with self._lock:
            self.step += 1
            self.phase = phase
            self.phase_steps[phase] = self.phase_steps.get(phase, 0) + 1
            self.emit({"type": "step"})

    def end(self, how: str) -> None:
        """Write the last line."""
        self.emit({"type": "end", "exit": how, "steps": self.step})
