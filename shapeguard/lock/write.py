"""A lock as text: the same lock is the same bytes wherever it is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from shapeguard.lock.values import SCHEMA, Lock, LockedGraph, LockedJob

HEAD = "# Written by `shapeguard lock`: all that may compile for Neuron. Commit it; do not edit it by hand.\n"


def text(lock: Lock) -> str:
    """Give the whole file: sorted, with LF, with neither times nor paths."""
    return "\n".join(_blocks(lock))


def _blocks(lock: Lock) -> Iterator[str]:
    yield f"{HEAD}schema = {SCHEMA}\n"
    yield _table("[toolchain]", [f"{name} = {quoted(version)}" for name, version in sorted(lock.toolchain.items())])
    for name, job in sorted(lock.jobs.items()):
        yield _table(f"[job.{quoted(name)}]", _job(job))
    for graph in sorted(lock.graphs.values(), key=_order):
        yield _table("[[graph]]", _graph(graph))


def _table(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *lines]) + "\n"


def _order(graph: LockedGraph) -> tuple[object, ...]:
    """By what a reader looks for first; the key last, so that a new shape stands beside its sisters."""
    return graph.model, graph.kind, graph.inputs, graph.key


def _job(job: LockedJob) -> Iterator[str]:
    yield f"settings = {quoted(job.settings)}"
    yield f"target = {quoted(job.target)}"
    yield f"world = {job.world}"
    yield from _array("eager", job.eager)
    yield from _array("fallbacks", job.fallbacks)


def _array(name: str, rows: Sequence[str]) -> Iterator[str]:
    """One row a line, so that two branches rarely touch the same."""
    if not rows:
        yield f"{name} = []"
        return
    yield f"{name} = ["
    for row in sorted(set(rows)):
        yield f"    {quoted(row)},"
    yield "]"


def _graph(graph: LockedGraph) -> Iterator[str]:
    yield f"kind = {quoted(graph.kind)}"
    yield f"key = {quoted(graph.key)}"
    yield f"model = {quoted(graph.model)}"
    yield f"inputs = {_inline(graph.inputs)}"
    yield f"dtypes = {_inline(graph.dtypes)}"
    if graph.constants:
        yield f"constants = {_inline(graph.constants)}"
    if graph.parameters:
        yield f"parameters = {quoted(graph.parameters)}"
    yield f"nodes = {graph.nodes}"
    yield f"jobs = {_inline(sorted(graph.jobs))}"
    if graph.late:
        yield f"late = {_inline(sorted(graph.late))}"


def _inline(rows: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, rows))}]"


def quoted(value: str) -> str:
    """Give a text as TOML writes it: JSON's escapes are TOML's too, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
