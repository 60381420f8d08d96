"""Turn event lines into values; tolerant of what a killed process or a newer release wrote."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from sys import intern
from typing import Any, TypeVar

import msgspec

from shapeguard.runs.quick import CompileLine, Part, compile_line
from shapeguard.runs.values import (
    DYNAMIC,
    Batch,
    Break,
    Compile,
    Fallback,
    Forward,
    Input,
    Note,
    Owner,
    Placement,
    Process,
    Site,
)

T = TypeVar("T", bound=Hashable)
_decode = msgspec.json.Decoder().decode


class Reader:
    """Reads event files; equal inputs, sites and signatures are held once for all of them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._inputs_known: dict[Hashable, Input] = {}
        self._sites_known: dict[Hashable, Site] = {}
        self._site_part = Part(self._site)
        self._inputs_part = Part(self._inputs)
        self._constants_part = Part(self._constants)
        self._modes_part = Part(self._modes)
        self._counts_part = Part(_counts)
        self._dtypes_part = Part(self._dtypes)
        self._owners_part = Part(self._owners)

    def process(self, lines: Iterable[bytes], *, rank: int = 0) -> Process:
        """Read one file; a torn last line is what a killed process leaves and no problem."""
        found = Process(rank=rank)
        broken = 0
        torn = False
        for number, text in enumerate(lines, start=1):
            if torn:
                found.notes.append(Note(code="broken-line", message=f"line {broken} of the event file cannot be read"))
                torn = False
            line = compile_line(text) if b'"compile"' in text else None
            if line is not None:
                self._take_line(found, line)
                continue
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
        found.forked = bool(event.get("forked"))
        found.rank = int(event.get("rank", found.rank))
        found.world_size = int(event.get("world_size", 1))
        found.warmup_steps = int(event.get("warmup_steps", 2))
        found.device = dict(event.get("device") or {})

    def _take_step(self, found: Process, event: Mapping[str, Any]) -> None:
        phase = str(event.get("phase") or "")
        found.num_steps = max(found.num_steps, int(event.get("step", 0)))
        found.phases[phase] = int(event.get("phase_step") or found.phases.get(phase, 0) + 1)

    def _take_compile(self, found: Process, event: Mapping[str, Any]) -> None:
        get = event.get  # a long run has a hundred thousand of these
        phase = str(get("phase") or "")
        phase_step = get("phase_step")
        found.compiles.append(
            Compile(
                n=int(get("n", 0)),
                kind=intern(str(get("kind", ""))),
                outcome=intern(str(get("outcome", ""))),
                key=str(get("key") or ""),
                name=intern(str(get("op") or get("name") or get("graph") or "")),
                region=int(get("region") or 0),
                code=self._site(get("code")),
                instance=int(get("instance") or 0),
                inputs=self._inputs(get("inputs")),
                constants=self._constants(get("constants")),
                guard=str(get("guard") or ""),
                modes=self._modes(get("modes")),
                model=intern(_text(get("model") or "")),
                config=intern(str(get("config") or "")),
                tp=int(get("tp") or 0),
                nodes=int(get("nodes") or 0),
                operators=_counts(get("operators")),
                dtypes=self._dtypes(get("dtypes")),
                neff=str(get("neff") or ""),
                seconds=_seconds(get("seconds")),
                collectives=int(get("collectives") or 0),
                outline=str(get("outline") or ""),
                exchange=str(get("exchange") or ""),
                limit=int(get("limit") or 0),
                certainty=str(get("certainty") or ""),
                step=int(get("step") or 0),
                phase=intern(phase),
                phase_step=int(phase_step if phase_step is not None else found.phases.get(phase, 0)),
                site=self._site(get("site")),
                owners=self._owners(get("owners")),
            )
        )

    def _take_line(self, found: Process, line: CompileLine) -> None:
        """Take a compile as `_take_compile` does, from a line that is written as it should be."""
        phase = line.phase
        try:
            compile = Compile(
                n=line.n,
                kind=intern(line.kind),
                outcome=intern(line.outcome),
                key=line.key,
                name=intern(line.op or line.name or line.graph or ""),
                region=line.region,
                code=self._site_part(line.code),
                instance=line.instance,
                inputs=self._inputs_part(line.inputs),
                constants=self._constants_part(line.constants),
                guard=line.guard,
                modes=self._modes_part(line.modes),
                model=intern(line.model),
                config=intern(line.config),
                tp=line.tp,
                nodes=line.nodes,
                operators=self._counts_part(line.operators),
                dtypes=self._dtypes_part(line.dtypes),
                neff=line.neff,
                seconds=_seconds(line.seconds),
                collectives=line.collectives,
                outline=line.outline,
                exchange=line.exchange,
                limit=line.limit,
                certainty=line.certainty,
                step=line.step,
                phase=intern(phase),
                phase_step=line.phase_step if line.phase_step is not None else found.phases.get(phase, 0),
                site=self._site_part(line.site),
                owners=self._owners_part(line.owners),
            )
        except (TypeError, ValueError, AttributeError, KeyError):
            found.notes.append(Note(code="broken-line", message="a line of type 'compile' cannot be read"))
            return
        found.compiles.append(compile)

    def _take_outcome(self, found: Process, event: Mapping[str, Any]) -> None:
        number = int(event["n"])
        # Their numbers count from 1 in the order of the lines, unless a line was lost.
        places = (number - 1, *range(len(found.compiles) - 1, -1, -1))
        at = next((i for i in places if 0 <= i < len(found.compiles) and found.compiles[i].n == number), None)
        if at is None:
            return
        before = found.compiles[at]
        found.compiles[at] = replace(
            before,
            outcome=intern(str(event.get("outcome") or before.outcome)),
            seconds=_seconds(event.get("seconds")),
            name=intern(str(event.get("name") or before.name)),
            neuron=str(event.get("neuron") or ""),
            neff=str(event.get("neff") or before.neff),
        )

    def _take_device(self, found: Process, event: Mapping[str, Any]) -> None:
        found.device = {**found.device, **dict(event.get("device") or {})}

    def _take_forward(self, found: Process, event: Mapping[str, Any]) -> None:
        found.forwards.append(
            Forward(
                model=str(event.get("model") or ""),
                shapes=tuple((str(k), tuple(map(int, v))) for k, v in (event.get("shapes") or {}).items()),
                step=int(event.get("step") or 0),
                phase=str(event.get("phase") or ""),
                phase_step=int(event.get("phase_step") or 0),
                site=self._site(event.get("site")),
                owners=self._owners(event.get("owners")),
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
            site=self._site(event.get("site") or event.get("collator")),
            loader=self._site(event.get("loader")),
            last=bool(event.get("last")),
        )
        found.batches[batch] = found.batches.get(batch, 0) + 1
        found.rows.update(map(int, event.get("rows") or ()))
        found.tokens[0] += int(event.get("real") or event.get("real_tokens") or 0)
        found.tokens[1] += int(event.get("padded") or event.get("padded_tokens") or 0)

    def _take_break(self, found: Process, event: Mapping[str, Any]) -> None:
        site, code = self._site(event.get("site")), self._site(event.get("code"))
        if site is not None:
            found.breaks.append(
                Break(
                    reason=str(event.get("reason") or ""),
                    site=site,
                    file=code.file if code else site.file,
                    resumes=int(event.get("resumes") or 0),
                    is_loop=bool(event.get("is_loop")),
                    step=int(event.get("step") or 0),
                    phase=str(event.get("phase") or ""),
                )
            )

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

    def _inputs(self, rows: Iterable[Mapping[str, Any]] | None) -> tuple[Input, ...]:
        return self._one(tuple([self._input(row) for row in rows or ()]))

    def _dtypes(self, names: Iterable[object] | None) -> tuple[str, ...]:
        return self._one(tuple(map(str, names or ())))

    def _input(self, row: Mapping[str, Any]) -> Input:
        get = row.get
        shape = get("shape")
        known = (
            get("path"),
            tuple(shape) if shape else (),
            get("dtype"),
            get("layout"),
            get("device"),
            get("requires_grad"),
        )
        found: Input | None = self._inputs_known.get(known)
        if found is None:
            found = self._inputs_known[known] = _new_input(row)
        return found

    def _owners(self, rows: Sequence[Mapping[str, Any]] | None) -> tuple[Owner, ...]:
        if not rows:
            return ()
        owners = [(self._site(row), row) for row in rows]
        return self._one(tuple(_owner(site, row) for site, row in owners if site))

    def _constants(self, rows: Sequence[Mapping[str, Any]] | None) -> tuple[tuple[str, str], ...]:
        return self._one(tuple([(str(row["path"]), str(row["value"])) for row in rows])) if rows else ()

    def _modes(self, modes: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
        if not modes:
            return ()
        return self._one(tuple(sorted((str(k), _text(v)) for k, v in modes.items() if v is not None)))

    def _site(self, row: Mapping[str, Any] | None) -> Site | None:
        if not row or not row.get("file"):
            return None
        known = (row["file"], row.get("line"), row.get("function"))
        found = self._sites_known.get(known)
        if found is None:
            found = Site(file=str(known[0]), line=int(known[1] or 0), function=str(known[2] or ""))
            self._sites_known[known] = found
        return found

    def _one(self, value: T) -> T:
        found: T = self._known.setdefault(value, value)
        return found


def _owner(site: Site, row: Mapping[str, Any]) -> Owner:
    return Owner(
        role=str(row.get("role", "")), site=site, path=str(row.get("path") or ""), size=int(row.get("size") or 0)
    )


def _new_input(row: Mapping[str, Any]) -> Input:
    grad = row.get("requires_grad")
    device = str(row.get("device") or "")
    return Input(
        path=str(row.get("path", "")),
        shape=tuple(int(size) if isinstance(size, int) else DYNAMIC for size in row.get("shape") or ()),
        dtype=str(row.get("dtype", "")).removeprefix("torch."),
        layout=str(row.get("layout") or ""),
        device="" if device.startswith("neuron") else device,
        grad=None if grad is None else bool(grad),
    )


def _event(text: bytes) -> dict[str, Any] | None:
    try:
        event = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Python's own reader takes what the strict one does not: NaN, broken characters.
        try:
            event = json.loads(text.decode("utf-8", "replace"))
        except ValueError:
            return None
    return event if isinstance(event, dict) else None


def _counts(value: Any) -> Mapping[str, int]:
    rows = value.items() if isinstance(value, Mapping) else ()
    return {intern(str(name)): number for name, number in rows if isinstance(number, int) and number > 0}


def _seconds(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 else None


def _text(value: object) -> str:
    """Give a small JSON value as text: a model may be a name or an object with one."""
    if isinstance(value, Mapping):
        return str(value.get("name") or value.get("class") or "")
    return str(value)
