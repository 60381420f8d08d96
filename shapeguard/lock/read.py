"""Reads a lock, and says precisely what is wrong with one: the line, and the command that mends it.

A lock that was written by `shapeguard lock` is read line by line, which is many times faster than TOML in general; any
other, and any that has a mistake in it, goes through TOML and is looked at value by value.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from shapeguard.core.errors import LockError
from shapeguard.lock.quick import KEY, KINDS, LARGEST, quick
from shapeguard.lock.values import SCHEMA, Id, Lock, LockedGraph, LockedJob

MAX_BYTES = 256 << 20
ANEW = "`shapeguard lock --upgrade` writes it anew"
_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_MERGE = "take either side with `git checkout --ours` or `--theirs`, then run `shapeguard lock`"
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")

Table = dict[str, Any]
_GRAPH: Mapping[str, type] = {
    "kind": str,
    "key": str,
    "model": str,
    "inputs": list,
    "dtypes": list,
    "constants": list,
    "parameters": str,
    "nodes": int,
    "jobs": list,
    "late": list,
}
_JOB: Mapping[str, type] = {"settings": str, "target": str, "world": int, "eager": list, "fallbacks": list}
_TOP: Mapping[str, type] = {"schema": int, "toolchain": dict, "job": dict, "graph": list}
_WORDS = {str: "a text", int: "a whole number from 0 up", list: "a list of texts", dict: "a table"}


def read(path: Path) -> Lock:
    """Read a lock; `LockError` says what is wrong with it and where."""
    try:
        demand_file(path)
        if path.stat().st_size > MAX_BYTES:
            raise LockError(f"{path} is too large for a lock", hint=ANEW)
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise LockError(f"there is no {path}", hint="`shapeguard lock` writes it") from error
    except OSError as error:
        raise LockError(
            f"cannot read {path}: {error.strerror or error}",
            hint="make it readable, or remove it and run `shapeguard lock`",
        ) from error
    return parse(data, name=str(path))


def demand_file(path: Path) -> None:
    """Refuse a folder or a pipe where the lock is to be."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise LockError(f"{path} is no file", hint="remove it, then run `shapeguard lock`")


def parse(data: bytes, *, name: str) -> Lock:
    """Read a lock's bytes; `name` is what errors call the file."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LockError(f"{name}:{line}: not UTF-8 (byte {error.start})", hint=ANEW) from error
    return quick(text) or _Checked(name, text).lock(_toml(text, name))


def _toml(text: str, name: str) -> Table:
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(_MARKS) and line[7:8] in ("", " "):
            raise LockError(f"{name}:{number}: an unsolved merge ({line[:7]})", hint=_MERGE)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _TOML_LINE.search(str(error))
        last = int(match[1]) if match else text.rstrip().count("\n") + 1
        said = _TOML_LINE.sub("", str(error)).strip()
        raise LockError(f"{name}:{last}: no TOML: {said}", hint=f"mend the line, or {ANEW}") from error
    except RecursionError as error:
        raise LockError(f"{name}: no lock: it is nested too deeply", hint=ANEW) from error


class _Checked:
    """Turns the table of a lock into values, and names the line of what cannot be used."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text

    def lock(self, table: Table) -> Lock:
        schema = table.get("schema")
        if schema != SCHEMA or isinstance(schema, bool):
            self._schema(schema)
        self._fields(table, _TOP, "", head="")
        toolchain = table.get("toolchain", {})
        if not toolchain:
            raise self._error(1, "it names no toolchain")
        for name, version in toolchain.items():
            if not isinstance(version, str):
                raise self._wrong(f"toolchain.{name}", version, str, head="[toolchain]", field=name)
        jobs = {name: self._job(name, value) for name, value in table.get("job", {}).items()}
        graphs: dict[Id, LockedGraph] = {}
        for number, value in enumerate(table.get("graph", ()), 1):
            graph = self._graph(number, value, jobs)
            if graph.id in graphs:
                first = list(graphs).index(graph.id) + 1
                raise self._error(
                    self._line("[[graph]]", "key", number),
                    f"{graph.kind} graph {graph.key[:12]}… stands twice, first at line "
                    f"{self._line('[[graph]]', 'key', first)}",
                )
            graphs[graph.id] = graph
        return Lock(toolchain=dict(toolchain), jobs=jobs, graphs=graphs)

    def _schema(self, schema: object) -> None:
        line = self._line("", "schema")
        if isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA:
            raise LockError(
                f"{self._name}:{line}: the lock has schema {schema}, this shapeguard knows {SCHEMA}",
                hint="install the shapeguard that wrote it, or write it anew with `shapeguard lock --upgrade`",
            )
        said = "it names no schema" if schema is None else f"schema must be {SCHEMA}, not {schema!r}"
        raise LockError(f"{self._name}:{line}: {said}", hint="`shapeguard lock --upgrade` writes it anew")

    def _job(self, name: str, value: object) -> LockedJob:
        heads = (f'[job."{name}"]', f"[job.{name}]")
        head = next((head for head in heads if head in self._text), heads[0])
        if not isinstance(value, dict):
            raise self._wrong(f"job.{name}", value, dict, head="[job]", field=name)
        self._fields(value, _JOB, f"job.{name}", head=head)
        return LockedJob(
            settings=value.get("settings", ""),
            target=value.get("target", ""),
            world=value.get("world", 1),
            eager=tuple(value.get("eager", ())),
            fallbacks=tuple(value.get("fallbacks", ())),
        )

    def _graph(self, number: int, value: object, jobs: Mapping[str, LockedJob]) -> LockedGraph:
        if not isinstance(value, dict):
            raise self._wrong(f"graph {number}", value, dict, head="[[graph]]", field="", number=number)
        self._fields(value, _GRAPH, f"graph {number}", head="[[graph]]", number=number)
        kind, key, owners = value.get("kind", ""), value.get("key", ""), value.get("jobs", [])
        if kind not in KINDS or not KEY.fullmatch(key):
            field, shown = ("kind", kind) if kind not in KINDS else ("key", key)
            wanted = f"one of {', '.join(KINDS)}" if field == "kind" else "8 to 128 hex digits"
            line = self._line("[[graph]]", field, number)
            raise self._error(line, f"{field} of graph {number} must be {wanted}, not {shown!r}")
        for job in (*owners, *value.get("late", ())):
            if job not in jobs:
                self._no_job(job, jobs, number)
        if not owners:
            raise self._error(self._line("[[graph]]", "jobs", number), f"graph {number} names no job")
        if other := sorted({*value.get("late", ())} - {*owners}):
            line = self._line("[[graph]]", "late", number)
            raise self._error(line, f"graph {number} is late in job {other[0]!r}, which is none of its jobs")
        return LockedGraph(
            kind=kind,
            key=key,
            model=value.get("model", ""),
            inputs=tuple(value.get("inputs", ())),
            dtypes=tuple(value.get("dtypes", ())),
            constants=tuple(value.get("constants", ())),
            parameters=value.get("parameters", ""),
            nodes=value.get("nodes", 0),
            jobs=tuple(sorted(set(owners))),
            late=tuple(sorted(set(value.get("late", ())))),
        )

    def _no_job(self, job: str, jobs: Mapping[str, LockedJob], number: int) -> None:
        close = get_close_matches(job, jobs, n=1)
        meant = f"did you mean {close[0]!r}? " if close else ""
        line = self._line("[[graph]]", "jobs", number)
        raise self._error(line, f"graph {number} is of job {job!r}, which the lock does not have", meant)

    def _fields(self, table: Table, known: Mapping[str, type], where: str, *, head: str, number: int = 1) -> None:
        for field, value in table.items():
            wanted = known.get(field)
            place = f"{where}.{field}" if where else field
            if wanted is None:
                close = get_close_matches(field, known, n=1)
                meant = f"did you mean {close[0]!r}? " if close else ""
                raise self._error(self._line(head, field, number), f"unknown key {place!r}", meant)
            if not _is(value, wanted, is_tables=field == "graph" and not where):
                raise self._wrong(place, value, wanted, head=head, field=field, number=number)

    def _wrong(self, place: str, value: object, wanted: type, *, head: str, field: str, number: int = 1) -> LockError:
        words = "a list of tables, [[graph]]" if place == "graph" else _WORDS[wanted]
        return self._error(self._line(head, field, number), f"{place} must be {words}, not {_shown(value)}")

    def _error(self, line: int, said: str, meant: str = "") -> LockError:
        return LockError(f"{self._name}:{line}: {said}", hint=f"{meant}{ANEW}")

    def _line(self, head: str, field: str, number: int = 1) -> int:
        """Give the line of a key below the n-th header of that form; the header's own where it is not found."""
        found, at = 0, 0 if head else 1
        for index, line in enumerate(self._text.split("\n"), 1):
            bare = line.strip()
            if head and bare.partition("#")[0].strip() == head:
                found += 1
                at = index if found == number else at
            elif bare.startswith("[") and found == number and head and not bare.startswith(("[ ", '["')):
                break
            is_inside = found == number if head else True
            if is_inside and field and re.match(rf'"?{re.escape(field)}"?\s*[=.\]]', bare.removeprefix("[")):
                return index
        return at or self._dotted(field)

    def _dotted(self, field: str) -> int:
        """Give the first line that speaks of a key in another spelling: `job.train.world = 3`, `{ world = 3 }`."""
        wanted = re.compile(rf'(?<![\w-])"?{re.escape(field)}"?\s*=')
        lines = enumerate(self._text.split("\n"), 1)
        return next((number for number, line in lines if field and wanted.search(line)), 1)


def _shown(value: object) -> str:
    """Give a value of a wrong type as a person calls it."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list with {next((_shown(row) for row in value if not isinstance(row, str)), 'texts')}"
    return (
        str(value).lower()
        if isinstance(value, bool)
        else repr(value)[:60]
        if isinstance(value, (str, int, float))
        else str(value)
    )


def _is(value: object, wanted: type, *, is_tables: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, wanted):
        return False
    if isinstance(value, list):
        return all(isinstance(row, dict if is_tables else str) for row in value)
    return not isinstance(value, int) or 0 <= value <= LARGEST
