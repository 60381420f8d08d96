"""Turn event lines into values; tolerant of what a killed process or a newer release wrote."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

from shapeguard.runs.values import (
    Batch,
    Compile,
    Fallback,
    Input,
    Note,
    Owner,
    Placement,
    Process,
    Site,
)

T = TypeVar("T", bound=Hashable)


class Reader:
    """Reads event files; equal inputs, sites and signatures are held once for all of them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def process(self, lines: Iterable[bytes], *, rank: int = 0) -> Process:
        """Read one file; a torn last line is what a killed process leaves and no problem."""
        found = Process(rank=rank)
        broken = 0
        torn = False
        for number, text in enumerate(lines, start=1):
            if torn:
                found.notes.append(Note(code="broken-line", message=f"line {broken} of the event file cannot be read"))
                torn = False
            event = _event(text)
            if event is None:
                broken, torn = number, True
                continue
            self._take(found, event)
        return found

    def _take(self, found: Process, event: Mapping[str, Any]) -> None:
        take = getattr(self, f"_take_{event.get('type')}", None)
        if take is None:
            return
        try:
            take(found, event)
        except (TypeError, ValueError, AttributeError, KeyError):
            found.notes.append(Note(code="broken-line", message=f"a line of type {event['type']!r} cannot be read"))

    def _take_start(self, found: Process, event: Mapping[str, Any]) -> None:
        found.started = True
        found.rank = int(event.get("rank", found.rank))
        found.world_size = int(event.get("world_size", 1))
        found.warmup_steps = int(event.get("warmup_steps", 2))
        found.device = dict(event.get("device") or {})

    def _take_step(self, found: Process, event: Mapping[str, Any]) -> None:
        phase = str(event.get("phase") or "")
        found.num_steps = max(found.num_steps, int(event.get("step", 0)))
        found.phases[phase] = int(event.get("phase_step") or found.phases.get(phase, 0) + 1)

    def _take_compile(self, found: Process, event: Mapping[str, Any]) -> None:
        phase = str(event.get("phase") or "")
        phase_step = event.get("phase_step")
        modes = event.get("modes") or {}
        found.compiles.append(
            Compile(
                n=int(event.get("n", 0)),
                kind=self._one(str(event.get("kind", ""))),
                outcome=self._one(str(event.get("outcome", ""))),
                key=self._one(str(event.get("key") or "")),
                name=self._one(str(event.get("op") or event.get("name") or event.get("graph") or "")),
                region=int(event.get("region") or 0),
                code=self._site(event.get("code")),
                instance=int(event.get("instance") or 0),
                inputs=self._inputs(event.get("inputs") or ()),
                constants=self._one(tuple((str(c["path"]), str(c["value"])) for c in event.get("constants") or ())),
                guard=str(event.get("guard") or ""),
                modes=self._one(tuple(sorted((str(k), _text(v)) for k, v in modes.items()))),
                model=self._one(_text(event.get("model") or "")),
                nodes=int(event.get("nodes") or 0),
                collectives=int(event.get("collectives") or 0),
                limit=int(event.get("limit") or 0),
                certainty=str(event.get("certainty") or ""),
                step=int(event.get("step") or 0),
                phase=self._one(phase),
                phase_step=int(phase_step if phase_step is not None else found.phases.get(phase, 0)),
                site=self._site(event.get("site")),
                owners=self._owners(event.get("owners") or ()),
            )
        )

    def _take_fallback(self, found: Process, event: Mapping[str, Any]) -> None:
        found.fallbacks[str(event["op"])] = Fallback(
            calls=int(event.get("calls", 0)),
            num_bytes=int(event.get("bytes", 0)),
            site=self._site(event.get("site")),
        )

    def _take_placement(self, found: Process, event: Mapping[str, Any]) -> None:
        found.placements.append(
            Placement(
                model=_text(event.get("model") or ""),
                site=self._site(event.get("site")),
                loaded=self._site(event.get("loaded")),
                how=str(event.get("how") or ""),
            )
        )

    def _take_batch(self, found: Process, event: Mapping[str, Any]) -> None:
        shapes = event.get("shapes") or {}
        batch = Batch(
            shapes=self._one(tuple((str(name), tuple(map(int, shape))) for name, shape in shapes.items())),
            site=self._site(event.get("site")),
            loader=self._site(event.get("loader")),
            last=bool(event.get("last")),
        )
        found.batches[batch] = found.batches.get(batch, 0) + 1
        found.tokens[0] += int(event.get("real") or 0)
        found.tokens[1] += int(event.get("padded") or 0)

    def _take_problem(self, found: Process, event: Mapping[str, Any]) -> None:
        found.notes.append(
            Note(
                code=str(event.get("code") or ""),
                message=str(event.get("message") or ""),
                site=self._site(event.get("site")),
            )
        )

    def _take_end(self, found: Process, event: Mapping[str, Any]) -> None:
        found.end = str(event.get("exit") or "ok")

    def _inputs(self, rows: Iterable[Mapping[str, Any]]) -> tuple[Input, ...]:
        return self._one(tuple(self._input(row) for row in rows))

    def _input(self, row: Mapping[str, Any]) -> Input:
        grad = row.get("grad")
        device = str(row.get("device") or "")
        known = (
            str(row.get("path", "")),
            tuple(int(size) if isinstance(size, int) else -1 for size in row.get("shape") or ()),
            str(row.get("dtype", "")).removeprefix("torch."),
            str(row.get("layout") or ""),
            "" if device.startswith("neuron") else device,
            None if grad is None else bool(grad),
        )
        found = self._known.get(("input", known))
        if found is None:
            path, shape, dtype, layout, device, grad = known
            found = Input(path=path, shape=shape, dtype=dtype, layout=layout, device=device, grad=grad)
            self._known["input", known] = found
        assert isinstance(found, Input)
        return found

    def _owners(self, rows: Iterable[Mapping[str, Any]]) -> tuple[Owner, ...]:
        owners = ((str(row.get("role", "")), self._site(row)) for row in rows)
        return self._one(tuple(Owner(role=role, site=site) for role, site in owners if site))

    def _site(self, row: Mapping[str, Any] | None) -> Site | None:
        if not row or not row.get("file"):
            return None
        return self._one(
            Site(file=str(row["file"]), line=int(row.get("line") or 0), function=str(row.get("function") or ""))
        )

    def _one(self, value: T) -> T:
        found: T = self._known.setdefault(value, value)
        return found


def _event(text: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(text)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _text(value: object) -> str:
    """Give a small JSON value as text: a model may be a name or an object with one."""
    if isinstance(value, Mapping):
        return str(value.get("name") or value.get("class") or "")
    return str(value)
