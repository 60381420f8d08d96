"""Records as reports: for people by the user's names, for programs whole."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from shapeguard.cache.check import Trouble
from shapeguard.cache.why import Difference, Nearest
from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.graphs import GraphInput, GraphRecord
from shapeguard.core.report import JSON, Report, Table, Text

SCHEMA = 1
_SHORT = 10
_SHOWN_INPUTS = 3
_MOST = 20
"""Problems of one kind that are shown."""


def listed(records: Sequence[GraphRecord], *, limit: int, num_eager: int = 0, num_others: int = 0) -> Report:
    """Give a table of records; `num_others` would fit and were not read."""
    shown = records[:limit]
    num_more = num_others + max(0, len(records) - limit)
    notes = [f"{num_more} more; --limit 0 shows all"] if num_more else []
    if num_eager:
        told = "1 eager operator is not shown; --eager lists it"
        notes.append(told if num_eager == 1 else f"{num_eager} eager operators are not shown; --eager lists them")
    table = Table(
        columns=("id", "model", "kind", "inputs", "target", "device", "seconds", "nodes", "last seen", "runs"),
        rows=tuple(_row(record) for record in shown),
        right=frozenset({6, 7, 9}),
        note="; ".join(notes),
    )
    rows = [plain(record) for record in records]
    sections = (table,) if records else (Text(text="; ".join(["no graph is recorded that fits", *notes])),)
    return Report(
        tool="cache",
        sections=sections,
        document={"schema": SCHEMA, "records": rows, "eager_operators": num_eager},
        rows=rows,
        totals={"records": len(records)},
    )


def _row(record: GraphRecord) -> tuple[str, ...]:
    kind = f"{record.kind} {record.name}" if record.is_eager else record.kind
    return (
        record.key.id[:_SHORT],
        str(record.model) or "-",
        kind,
        inputs(record.inputs),
        record.key.target,
        record.key.device,
        seconds(record),
        str(record.nodes or "-"),
        day(record.last_seen),
        str(record.hits + 1),
    )


def inputs(found: Sequence[GraphInput]) -> str:
    """Give the first inputs on one line."""
    more = f" +{len(found) - _SHOWN_INPUTS}" if len(found) > _SHOWN_INPUTS else ""
    return (", ".join(map(str, found[:_SHOWN_INPUTS])) or "none") + more


def seconds(record: GraphRecord) -> str:
    """Give what the compile took."""
    if record.compile_s is None:
        return "-"
    return f"{record.compile_s:.1f}"


def day(when: int) -> str:
    """Give a day in UTC."""
    if not when:
        return "-"
    try:
        return time.strftime("%Y-%m-%d", time.gmtime(when))
    except (OverflowError, ValueError, OSError):
        return "-"


def plain(record: GraphRecord) -> Mapping[str, JSON]:
    """Give a record as JSON, with its id."""
    row: dict[str, JSON] = {"id": record.key.id, **msgspec.to_builtins(record)}
    return row


def shown(record: GraphRecord) -> Report:
    """Give all that is known of one graph."""
    rows = [(name, value) for name, value in _fields(record) if value]
    rows += [("input", str(each)) for each in record.inputs]
    rows += [("constant", f"{path} = {value}") for path, value in record.constants]
    rows += [("mode", f"{name} {value}") for name, value in record.modes]
    rows += [("version", f"{name} {version}") for name, version in sorted(record.versions.items())]
    top = sorted(record.operators.items(), key=lambda item: (-item[1], item[0]))
    rows += [("operator", f"{name} {number}") for name, number in top[:20]]
    table = Table(columns=("", ""), rows=tuple(rows))
    return Report(tool="cache", sections=(table,), document={"schema": SCHEMA, "record": plain(record)})


def _fields(record: GraphRecord) -> Iterable[tuple[str, str]]:
    key, neff = record.key, record.neff
    yield "id", key.id
    yield "graph", key.graph
    yield "model", str(record.model)
    yield "kind", record.kind
    yield "name", record.name
    yield "target", key.target
    yield "device", key.device
    yield "compiler", key.compiler
    yield "flags", " ".join(key.flags)
    yield "world size", str(record.world_size)
    yield "tp", str(record.tp or "")
    yield "compile", f"{record.compile_s:.1f} s" if record.compile_s is not None else ""
    yield "nodes", str(record.nodes or "")
    yield "neff", f"{size(neff.size_bytes)}, sha256 {neff.digest}" if neff else ""
    yield "neuron key", record.neuron_key
    yield "persistent key", record.persistent_key
    yield "source", record.source
    yield "jobs", ", ".join(record.jobs)
    yield "first seen", day(record.first_seen)
    yield "last seen", day(record.last_seen)
    yield "runs", str(record.hits + 1)


def explained(
    asked: str, found: Nearest | None, *, known: GraphRecord | None = None
) -> tuple[list[Table | Text], JSON]:
    """Give what `why` says of one graph: whether it is known, the nearest, and what differs."""
    asked = tame(asked)
    if found is None and known is None:
        text = f"{asked}: not known, and nothing is recorded that could be compared"
        return [Text(text=text, strong=True)], {"asked": asked, "known": None, "nearest": None, "differences": []}
    parts: list[Table | Text] = []
    if known is not None:
        parts.append(Text(text=f"{asked}: known, {_seen(known)}", strong=True))
    elif found is not None and found.is_same:
        parts.append(Text(text=f"{asked}: known, {_seen(found.record)}", strong=True))
    else:
        parts.append(Text(text=f"{asked}: not known", strong=True))
    if found is not None and not found.is_same:
        parts.append(_differences(found, other="nearest other" if known else "nearest"))
    same = known or (found.record if found and found.is_same else None)
    return parts, {
        "asked": asked,
        "known": plain(same) if same else None,
        "nearest": plain(found.record) if found else None,
        "differences": [_plain(row) for row in found.differences] if found else [],
    }


def _seen(record: GraphRecord) -> str:
    took = f", {record.compile_s:.1f} s" if record.compile_s is not None else ""
    runs = counted(record.hits + 1, "run")
    return f"{record.key.id[:_SHORT]}, first seen {day(record.first_seen)}, seen in {runs}{took}"


def _differences(found: Nearest, *, other: str) -> Table:
    record = found.record
    name = str(record.model) or record.name
    return Table(
        title=tame(f"{other}: {record.key.id[:_SHORT]} {name}, {record.kind}, {inputs(record.inputs)}"),
        columns=("differs", "asked", "recorded", ""),
        rows=tuple((row.part, row.wanted, row.found, row.detail) for row in found.differences),
    )


def _plain(row: Difference) -> Mapping[str, JSON]:
    return {"part": row.part, "asked": row.wanted, "recorded": row.found, "detail": row.detail}


def verified(troubles: Sequence[Trouble], *, num_records: int) -> Report:
    """Give what `verify` found."""
    broken = [each for each in troubles if not each.is_note and not each.mended]
    found = counted(len(troubles), "problem") if troubles else "all sound"
    text = f"{counted(num_records, 'record')}, {found}"
    if broken:
        text += "; `shapeguard cache verify --repair` mends them"
    rows: list[JSON] = [
        {"where": t.where, "message": t.message, "mended": t.mended, "note": t.is_note} for t in troubles
    ]
    return Report(
        tool="cache",
        sections=(Text(text=text, strong=True),),
        problems=tuple(
            Problem(path=t.where, message=t.message + (f"; {t.mended}" if t.mended else "")) for t in troubles
        ),
        document={"schema": SCHEMA, "records": num_records, "problems": rows},
        exit_code=Exit.FINDINGS if broken else Exit.CLEAN,
    )


def size(number: int) -> str:
    """Give a number of bytes as people read it."""
    if number < 1000:
        return f"{number} B"
    value = float(number)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 1000:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def tame(text: str) -> str:
    """Show control characters instead of sending them to a terminal; records come from elsewhere."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def counted(number: int, noun: str) -> str:
    """Give `1 record`, `2 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def with_skipped(report: Report, skipped: Mapping[str, str]) -> Report:
    """Add the rows that could not be read: the others are there, and `verify` mends these."""
    if not skipped:
        return report
    rows = tuple(Problem(path=id, message=f"passed over: {message}") for id, message in list(skipped.items())[:_MOST])
    more = f"{len(skipped)} rows could not be read; `shapeguard cache verify --repair` mends that"
    return replace(
        report,
        problems=(*report.problems, *rows),
        notes=(*report.notes, more),
        document={**report.document, "skipped": dict(skipped)},
    )
