"""Read a log, make a run folder of it, and judge that run as any other."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from shapeguard.core import events
from shapeguard.core.errors import UsageError
from shapeguard.core.plugins import load
from shapeguard.importers import kinds
from shapeguard.importers.importer import Event, Imported, Importer
from shapeguard.runs.summary import Ended, Summary
from shapeguard.trace import folder as folders
from shapeguard.trace.supervise import finish

_NO_STEPS = (
    "{} does not say at which step a graph came: a function's k-th graph counts as of its k-th call, the earliest it "
    "can have come"
)
_NO_CALLS = "{} tells neither steps nor functions: what came after warm-up is not known"
_UNREAD = "{} lines of it could not be read and are left out"


def names() -> list[str]:
    """Name the kinds of logs that can be read."""
    load(kinds)
    return sorted(Importer.known)


def importer(path: Path, kind: str) -> Importer:
    """Give what reads a path; `UsageError` where nothing does."""
    load(kinds)
    if not path.exists():
        raise UsageError(f"there is no {path}", hint="give a log file or a folder")
    if kind:
        return Importer.known[kind]()
    for each in Importer.known.values():
        found = each()
        if found.fits(path):
            return found
    what = ", ".join(sorted(each.what for each in Importer.known.values()))
    raise UsageError(f"{path} is none of the logs that can be read", hint=f"known are: {what}; --kind names one")


def bring(path: Path, reader: Importer, *, run_dir: Path | None) -> tuple[Path, Summary]:
    """Make a run folder of a log; gives it with its summary."""
    root = Path.cwd().resolve()
    try:
        processes = reader.read(path, root=str(root))
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path} cannot be read as {reader.what}: {reason}", hint="--kind names another kind"
        ) from error
    if not any(process.events for process in processes):
        raise UsageError(f"{path} holds no compile", hint=f"it was read as {reader.what}; --kind names another kind")
    folder = folders.make(run_dir, name=f"import-{reader.name}", root=root)
    started: dict[str, object] = {
        "schema": events.SCHEMA,
        "command": ["import", path.name],
        "device": {"kind": "imported", "source": reader.what},
        "warmup_steps": 2,
    }
    folders.claim(folder, started)
    for number, process in enumerate(processes, start=1):
        _write(folder, process, reader, number)
    return folder, finish(folder, started, Ended())


def _write(folder: Path, process: Imported, reader: Importer, number: int) -> None:
    device = {"kind": "imported", "source": reader.what, "target": "", **process.device}
    start = {
        "type": "start",
        "schema": events.SCHEMA,
        "rank": process.rank,
        "world_size": process.world_size,
        "pid": number,
        "warmup_steps": 2,
        "device": device,
    }
    texts = [(_NO_STEPS if reader.has_steps else _NO_CALLS).format(reader.what)]
    if process.num_unread:
        texts.append(_UNREAD.format(process.num_unread))
    notes = [{"type": "problem", "code": "imported", "message": text} for text in texts]
    rows: Sequence[Event] = [start, *process.events, *notes, {"type": "end", "exit": "ok"}]
    path = folder / f"rank-{process.rank}.pid-{number}.jsonl"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.writelines(events.line(row) for row in rows)
