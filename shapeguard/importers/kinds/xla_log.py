"""Logs of the torch_xla stack (Trn1, Inf2): what its compiler wrapper and its cache print."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from shapeguard.core.events import Outcome
from shapeguard.importers.importer import Imported, Importer, Numbering
from shapeguard.importers.modules import module

_WRAPPER = re.compile(r"\|\|(?:NEURON_CC_WRAPPER|NEURON_CACHE|NCC_WRAPPER)\|\|:")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_MODULE = re.compile(r"MODULE_[0-9A-Za-z_]+(?:\+[0-9A-Za-z]+)?")
_COMPILER = re.compile(r"neuronxcc-([0-9][0-9A-Za-z.+]*)/")
_TARGET = re.compile(r"--target[= ',]+(\w+)")
_CALL, _CACHED = "Call compiler with cmd", "Using a cached neff"
_PASSED = ("Compiler status PASS", "Compilation Successfully Completed")
_FAILED = ("Compiler status ERROR", "Compiler status FAIL", "Compilation failed", "Got a cached failed neff")
_HEAD_LINES = 2000


class XlaLog(Importer):
    """Lines of NEURON_CC_WRAPPER and NEURON_CACHE in the output of a job."""

    name = "xla-log"
    what = "a log of the torch_xla stack"

    def fits(self, path: Path) -> bool:
        """Tell it by the wrapper's mark in the first lines."""
        if not path.is_file():
            return False
        with path.open(encoding="utf-8", errors="replace") as stream:
            return any(_WRAPPER.search(line) for _, line in zip(range(_HEAD_LINES), stream, strict=False))

    def read(self, path: Path, *, root: str) -> list[Imported]:
        """Read the file as one process: lines of all ranks stand in it, a module counts once."""
        with path.open(encoding="utf-8", errors="replace") as stream:
            return [_read(stream)]


def _read(lines: Iterable[str]) -> Imported:
    begun: dict[str, datetime | None] = {}
    ended: dict[str, tuple[Outcome, float | None]] = {}
    device: dict[str, object] = {}
    now: datetime | None = None
    for line in lines:
        stamp = _TIME.search(line)
        if stamp:
            now = datetime.strptime(stamp[1], "%Y-%m-%d %H:%M:%S")
        names = _MODULE.findall(line)
        _note_device(line, device)
        if _CALL in line and names:
            begun.setdefault(names[0], now)
        elif _CACHED in line and names:
            ended.setdefault(names[0], (Outcome.DISK, None))
        elif any(text in line for text in (*_PASSED, *_FAILED)):
            outcome = Outcome.COMPILED if any(text in line for text in _PASSED) else Outcome.FAILED
            # Without a name it is the module that was begun last and is not done.
            name = names[0] if names else next((each for each in reversed(begun) if each not in ended), "")
            if name:
                ended[name] = (outcome, _seconds(begun.get(name), now))
    numbering = Numbering()
    order = list(dict.fromkeys([*begun, *ended]))
    for number, name in enumerate(order, start=1):
        outcome, seconds = ended.get(name, (Outcome.COMPILED, None))
        module(numbering, number, name, outcome, seconds)
    return Imported(device=device, events=numbering.events)


def _note_device(line: str, device: dict[str, object]) -> None:
    if (target := _TARGET.search(line)) and _CALL in line:
        device.setdefault("target", target[1])
    if compiler := _COMPILER.search(line):
        device.setdefault("toolchain", {"neuronx-cc": compiler[1]})


def _seconds(begin: datetime | None, end: datetime | None) -> float | None:
    return (end - begin).total_seconds() if begin is not None and end is not None and end >= begin else None
