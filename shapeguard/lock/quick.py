"""Reads a lock that `write.text` has written: many times faster than TOML in general.

Its lines hold one value each, and their texts are JSON's; so the lines are put together as one JSON document, which is
decoded and checked in one go. Whatever is not as it was written is left to the slow reader, which says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Annotated

import msgspec

from shapeguard.lock.values import SCHEMA, Lock, LockedGraph, LockedJob

KINDS = ("forward", "backward", "inference")
KEY = re.compile(r"[0-9a-f]{8,128}")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
LARGEST = 2**63 - 1
"""The largest whole number that every reader of TOML knows."""
_Size = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]


class _Job(msgspec.Struct, forbid_unknown_fields=True):
    settings: str = ""
    target: str = ""
    world: _Size = 1
    eager: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()


class _Graph(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    key: str
    model: str = ""
    inputs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    parameters: str = ""
    nodes: _Size = 0
    jobs: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    toolchain: dict[str, str] = {}
    job: dict[str, _Job] = {}
    graph: tuple[_Graph, ...] = ()


def quick(text: str) -> Lock | None:
    """Give the lock, or None where a single line is anything else than what is written."""
    document = _json(text)
    if document is None:
        return None
    try:
        found = msgspec.json.decode(document, type=_File)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    if found.schema != SCHEMA or not found.toolchain or not all(_is_sound(graph, found.job) for graph in found.graph):
        return None
    rows = [LockedGraph(**msgspec.structs.asdict(graph)) for graph in found.graph]
    graphs = {graph.id: graph for graph in rows}
    if len(graphs) < len(rows):
        return None
    jobs = {name: LockedJob(**msgspec.structs.asdict(job)) for name, job in found.job.items()}
    return Lock(toolchain=found.toolchain, jobs=jobs, graphs=graphs)


def _is_sound(graph: _Graph, jobs: Mapping[str, _Job]) -> bool:
    is_known = all(job in jobs for job in graph.jobs) and all(job in graph.jobs for job in graph.late)
    return bool(graph.jobs) and is_known and graph.kind in KINDS and KEY.fullmatch(graph.key) is not None


def _json(text: str) -> str | None:
    """Give the file as JSON; None where a line has another form, or a name stands twice."""
    graphs: list[str] = []
    jobs: dict[str, str] = {}
    tops: dict[str, str] = {}
    for block in text.split("\n\n"):
        head, _, body = block.strip("\n").partition("\n")
        if not head:
            continue
        fields = _fields(body)
        if fields is None:
            return None
        if head == "[[graph]]":
            graphs.append(fields)
        elif head.startswith('[job."') and head.endswith('"]') and (name := head[5:-1]) not in jobs:
            jobs[name] = f"{name}:{fields}"
        elif head == "[toolchain]" and head not in tops:
            tops[head] = f'"toolchain":{fields}'
        elif head.startswith("#") and not tops and body.startswith("schema = "):
            tops["#"] = fields[1:-1]
        else:
            return None
    return f'{{{",".join([*tops.values(), _table("job", jobs.values())])},"graph":[{",".join(graphs)}]}}'


def _table(name: str, rows: Iterable[str]) -> str:
    return f'"{name}":{{{",".join(rows)}}}'


def _fields(body: str) -> str | None:
    """Give the lines `name = value` of a block as a JSON object."""
    found: dict[str, str] = {}
    lines = iter(body.split("\n"))
    for line in lines:
        name, mark, value = line.partition(" = ")
        if not mark or name in found or not _NAME.fullmatch(name):
            return None
        found[name] = _rest(lines) if value == "[" else value
    pairs = [f'"{name}":{value}' for name, value in found.items()]
    return f"{{{','.join(pairs)}}}"


def _rest(lines: Iterator[str]) -> str:
    """Give an array with a row a line, up to its end."""
    rows = [line.strip().removesuffix(",") for line in takewhile("]".__ne__, lines)]
    return f"[{','.join(rows)}]"
