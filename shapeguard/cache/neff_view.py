"""NEFF folders as reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shapeguard.cache.clean import Removal
from shapeguard.cache.link import Linked
from shapeguard.cache.neff_folder import NeffFolder
from shapeguard.cache.view import SCHEMA, size
from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Table, Text


def scanned(found: Sequence[tuple[NeffFolder, Sequence[Linked]]], *, limit: int, num_kept: int | None) -> Report:
    """Give what `scan` saw."""
    sections: list[Table | Text] = []
    problems: list[Problem] = []
    for folder, linked in found:
        sections.append(Text(text=_sum(folder, linked), strong=True))
        if linked:
            sections.append(_table(folder, linked, limit or len(linked)))
        problems += [Problem(path=str(each.entry.path), message=each.trouble) for each in linked if each.trouble]
    if num_kept is not None:
        sections.append(Text(text=f"{num_kept} records now know their file"))
    return Report(
        tool="cache",
        sections=tuple(sections),
        problems=tuple(problems),
        document={"schema": SCHEMA, "folders": [_plain(folder, linked) for folder, linked in found]},
        exit_code=Exit.FINDINGS if problems else Exit.CLEAN,
    )


def _sum(folder: NeffFolder, linked: Sequence[Linked]) -> str:
    states = Counter(str(each.entry.state) for each in linked)
    parts = [f"{number} {state}" for state, number in sorted(states.items())] or ["nothing compiled"]
    parts.append(size(sum(each.entry.size_bytes for each in linked)))
    if linked:
        parts.append(f"{sum(each.record is not None for each in linked)} of recorded graphs")
    if folder.locks:
        stale = sum(lock.is_stale for lock in folder.locks)
        parts.append(f"{len(folder.locks)} locks, {stale} of them stale")
    if folder.simulated:
        parts.append(f"{len(folder.simulated)} of the simulated device, which are no NEFFs")
    if folder.strangers:
        parts.append(f"{len(folder.strangers)} names of no layout left alone")
    return f"{folder.root}: {', '.join(parts)}"


def _table(folder: NeffFolder, linked: Sequence[Linked], limit: int) -> Table:
    rows = []
    for each in linked[:limit]:
        name, record = each.entry.name, each.record
        graph = f"{record.key.id[:10]} {record.model}" if record else "-"
        state = f"{each.entry.state}, in use" if each.entry.is_held else str(each.entry.state)
        rows.append((name.key, str(name.layout), name.compiler or "-", state, size(each.entry.size_bytes), graph))
    more = f"{len(linked) - limit} more; --limit 0 shows all" if len(linked) > limit else ""
    return Table(
        columns=("key", "layout", "compiler", "state", "size", "graph"),
        rows=tuple(rows),
        right=frozenset({4}),
        note=more,
    )


def _plain(folder: NeffFolder, linked: Sequence[Linked]) -> Mapping[str, JSON]:
    entries: list[JSON] = []
    for each in linked:
        name = each.entry.name
        entries.append(
            {
                "key": name.key,
                "layout": str(name.layout),
                "compiler": name.compiler,
                "flags": name.flags,
                "state": str(each.entry.state),
                "held": each.entry.is_held,
                "size_bytes": each.entry.size_bytes,
                "path": each.entry.path.relative_to(folder.root).as_posix(),
                "record": each.record.key.id if each.record else None,
                "trouble": each.trouble,
            }
        )
    locks: list[JSON] = [
        {"path": lock.path.relative_to(folder.root).as_posix(), "stale": lock.is_stale} for lock in folder.locks
    ]
    return {
        "folder": str(folder.root),
        "entries": entries,
        "locks": locks,
        "simulated": list(folder.simulated),
        "strangers": list(folder.strangers),
    }


def cleaned(done: Sequence[tuple[Removal, str]], *, dry_run: bool) -> Report:
    """Give what `clean` removed or would."""
    gone = [removal for removal, left in done if not left]
    num_bytes = sum(removal.size_bytes for removal in gone)
    text = f"{'would remove' if dry_run else 'removed'} {len(gone)}, {size(num_bytes)}"
    rows = tuple((size(removal.size_bytes), removal.reason, str(removal.path)) for removal in gone)
    table = Table(columns=("size", "why", "path"), rows=rows, right=frozenset({0}))
    removed: list[JSON] = [{"path": str(each.path), "reason": each.reason, "bytes": each.size_bytes} for each in gone]
    stays = [(str(removal.path), left) for removal, left in done if left]
    failed: list[JSON] = [{"path": path, "message": left} for path, left in stays]
    document: dict[str, JSON] = {"schema": SCHEMA, "dry_run": dry_run, "removed": removed, "bytes": num_bytes}
    return Report(
        tool="cache",
        sections=(*((table,) if rows else ()), Text(text=text, strong=True)),
        problems=tuple(Problem(path=path, message=f"stays: {left}") for path, left in stays),
        document={**document, "failed": failed},
        is_listing=True,
        exit_code=Exit.FAILED if stays else Exit.CLEAN,
    )
