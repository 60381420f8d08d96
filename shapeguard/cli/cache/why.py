"""`shapeguard cache why`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.cache_options import cache_options, record_options
from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import JSON, Report, Table, Text

if TYPE_CHECKING:
    from shapeguard.cache.select import Wanted
    from shapeguard.cache.store import GraphCache
    from shapeguard.core.graphs import GraphRecord

_MOST = 20


@click.command(short_help="Say why a graph is new: the nearest known one, and what differs.")
@click.argument("model", default="")
@click.argument("shape", default="")
@click.option("--event", metavar="RUN[:N]", help="Ask for the graphs of a run instead, or for its compile number N.")
@record_options
@cache_options
@report_options
def command(folder: Path, wanted: Wanted, event: str | None) -> Report:
    """Name the recorded graph that is nearest to MODEL at SHAPE, and the parts that differ: exactly those.

    SHAPE is 8x512, or input_ids=8x512:int64, several with commas. With --event all parts are compared: shapes, dtypes,
    strides, constants, modes, flags, compiler, versions, target, ranks, and the model's configuration.
    """
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import with_skipped

    if bool(event) == bool(wanted.model):
        raise UsageError("give either a model or --event RUN", hint="shapeguard cache why LlamaForCausalLM 8x512")
    with GraphCache(folder, for_reading=True) as cache:
        found = _of_events(cache, event, wanted) if event else [_of_words(cache, wanted)]
    graphs = [document for _, document in found]
    report = Report(
        tool="cache",
        sections=tuple(part for parts, _ in found for part in parts),
        document={"schema": 1, "graphs": graphs},
        rows=graphs,
    )
    return with_skipped(report, cache.skipped)


def _of_words(cache: GraphCache, wanted: Wanted) -> tuple[list[Table | Text], JSON]:
    from shapeguard.cache.select import is_model, model_prefix
    from shapeguard.cache.view import explained
    from shapeguard.cache.why import nearest_to

    name = wanted.model.partition("@")[0]
    eager = wanted.kind in ("eager", "collective")
    # Of the model itself as long as there is one: another model is never what a user means.
    own = [each for each in cache.records(model_prefix(name), eager=eager) if is_model(name, each.model)]
    return explained(_asked(wanted), nearest_to(wanted, own or _of_others(cache, name, eager=eager)))


def _of_others(cache: GraphCache, name: str, *, eager: bool) -> list[GraphRecord]:
    """Give the records of the model whose name is most like this one, this one left out."""
    from difflib import get_close_matches

    names = {key.partition("@")[0] for key in cache.models(eager=eager)} - {name}
    close = get_close_matches(name, sorted(names), n=1, cutoff=0.0)
    return [each for each in cache.records(close[0], eager=eager) if each.model.name == close[0]] if close else []


def _asked(wanted: Wanted) -> str:
    words = [wanted.model] if wanted.model else []
    words += [f"{each.path} {'×'.join(map(str, each.shape))} {each.dtype}".strip() for each in wanted.shapes]
    for name in ("batch", "length", "dtype", "tp", "target", "kind", "device"):
        value = getattr(wanted, name)
        words += [f"{name} {value}"] if value not in (None, "") else []
    return ", ".join(words)


def _of_events(cache: GraphCache, event: str, wanted: Wanted) -> list[tuple[list[Table | Text], JSON]]:
    from shapeguard.cache.view import explained, inputs
    from shapeguard.cache.why import nearest

    asked = _asked_events(event, wanted)
    found = []
    for record in asked[:_MOST]:
        candidates = _candidates(cache, record)
        same = next((each for each in candidates if each.key.id == record.key.id), None)
        name = f"{record.kind} of {record.model.name or 'no model'}" if not record.is_eager else record.name
        text = f"{name}, {inputs(record.inputs)}"
        found.append(explained(text, nearest(record, candidates, skip_same=True), known=same))
    if len(asked) > _MOST:
        more: list[Table | Text] = [Text(text=f"{len(asked) - _MOST} graphs more; name one with --event RUN:N")]
        found.append((more, {"left_out": len(asked) - _MOST}))
    return found


def _candidates(cache: GraphCache, record: GraphRecord) -> list[GraphRecord]:
    """Give what a graph is compared with: its own model's records, and others where there is none but itself."""
    name, eager = record.model.name, record.is_eager
    own = [each for each in cache.records(name, eager=eager) if each.model.name == name]
    if any(each.key.id != record.key.id for each in own):
        return own
    return own + _of_others(cache, name, eager=eager)


def _asked_events(event: str, wanted: Wanted) -> list[GraphRecord]:
    """Give the graphs of a run that the options pick: operators only where their kind or number is given."""
    from shapeguard.cache.select import matches
    from shapeguard.core.graphs import EAGER_KINDS
    from shapeguard.runs.records import recorded
    from shapeguard.runs.stream import read_run

    folder, number = _split(event)
    pairs = list(recorded(read_run(folder)))
    if number is not None:
        pairs = [(compile, record) for compile, record in pairs if compile.n == number]
        if not pairs:
            message = f"{folder} has no compile of a graph with number {number}"
            raise UsageError(message, hint="see `n` in its event files")
    has_operators = number is not None or wanted.kind in EAGER_KINDS
    of_kind = [record for _, record in pairs if has_operators or not record.is_eager]
    found = list(_distinct(record for record in of_kind if matches(record, wanted)))
    if of_kind and not found:
        raise UsageError(f"{event} has no graph with {_asked(wanted)}", hint="leave out some of the options")
    return found


def _split(event: str) -> tuple[Path, int | None]:
    name, mark, number = event.rpartition(":")
    if mark and number.isdigit() and not Path(event).exists():
        return Path(name), int(number)
    return Path(event), None


def _distinct(records: Iterable[GraphRecord]) -> Iterable[GraphRecord]:
    return {record.key.id: record for record in records}.values()
