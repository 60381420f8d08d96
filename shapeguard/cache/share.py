"""Which records are shared."""

from __future__ import annotations

from shapeguard.cache.select import Wanted, model_prefix, select
from shapeguard.cache.store import GraphCache
from shapeguard.core.graphs import GraphRecord


def chosen(cache: GraphCache, model: str) -> list[GraphRecord]:
    """Give the records of a model, graphs and operators."""
    found: list[GraphRecord] = []
    for eager in (False, True):
        found += select(cache.records(model_prefix(model), eager=eager), Wanted(model=model))
    return found
