"""`shapeguard cache ls`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cache.select import Wanted, is_model, order
from shapeguard.cli.cache_options import cache_options, picked, record_options
from shapeguard.cli.options import current_output, report_options
from shapeguard.core.graphs import EAGER_KINDS, GraphRecord, ModelKey
from shapeguard.core.report import Report

if TYPE_CHECKING:
    from shapeguard.cache.store import GraphCache


@click.command(short_help="List what is recorded.")
@click.argument("model", default="")
@click.option("--eager", is_flag=True, help="List eager operators instead of graphs.")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Rows to show; 0 is all.")
@record_options
@cache_options
@report_options
def command(folder: Path, wanted: Wanted, eager: bool, limit: int) -> Report:
    """List the recorded graphs of MODEL: a class name, NAME@CONFIGURATION, or a pattern with `*`. Without it: all."""
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import listed, with_skipped

    eager = eager or wanted.kind in EAGER_KINDS
    with GraphCache(folder, for_reading=True) as cache:
        num_eager = 0 if eager or wanted.kind else _num_eager(cache, wanted)
        models = _models(cache, wanted, eager=eager)
        # A table of a hundred rows need not wait until a hundred thousand are read.
        some = _first(models, limit) if limit and wanted == Wanted(model=wanted.model) and not _is_whole() else None
        found = picked(cache, wanted, eager=eager) if some is None else _of(cache, some, eager=eager)
        num_others = 0 if some is None else sum(models.values()) - len(found)
    report = listed(found, limit=limit or len(found), num_eager=num_eager, num_others=max(0, num_others))
    return with_skipped(report, cache.skipped)


def _num_eager(cache: GraphCache, wanted: Wanted) -> int:
    """Give how many operators the list would have with --eager."""
    if wanted == Wanted(model=wanted.model):
        return sum(_models(cache, wanted, eager=True).values())
    return len(picked(cache, wanted, eager=True))


_FOR_PROGRAMS = ("json", "json-lines")


def _is_whole() -> bool:
    """Whether a program reads the report, which is to have all there is."""
    output = current_output()
    return any(form in _FOR_PROGRAMS for form in (output.format, *(form for form, _ in output.files)))


def _models(cache: GraphCache, wanted: Wanted, *, eager: bool) -> dict[str, int]:
    """Give the models that are meant, with how many records each has."""
    found = {}
    for key, number in cache.models(eager=eager).items():
        name, _, config = key.partition("@")
        if is_model(wanted.model, ModelKey(name=name, config=config)):
            found[key] = number
    return found


def _first(models: dict[str, int], limit: int) -> list[str]:
    """Give as many models as fill the rows."""
    found: list[str] = []
    number = 0
    for key in sorted(models):
        if number >= limit:
            break
        found.append(key)
        number += models[key]
    return found


def _of(cache: GraphCache, models: list[str], *, eager: bool) -> list[GraphRecord]:
    """Give the records of these models, in the order of the list."""
    return [
        record
        for key in models
        for record in sorted(cache.records(key, eager=eager), key=order)
        if str(record.model) == key
    ]
