"""Which records are shared."""

from __future__ import annotations

from shapeguard.cache.select import Wanted, demand_model, model_prefix, select
from shapeguard.cache.store import GraphCache
from shapeguard.core.graphs import GraphRecord


def chosen(cache: GraphCache, model: str) -> list[GraphRecord]:
    """Give the records of a model, graphs and operators; `UsageError` where there is no such model."""
    found: list[GraphRecord] = []
    for eager in (False, True):
        found += select(cache.records(model_prefix(model), eager=eager), Wanted(model=model))
    if not found:
        demand_model(model, [*cache.models(), *cache.models(eager=True)], where=f"in the cache {cache.folder}")
    return found
