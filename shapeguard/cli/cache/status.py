"""`shapeguard cache status`."""

from __future__ import annotations

from pathlib import Path

import click

from shapeguard.cli.cache_options import cache_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report, Table


@click.command(short_help="Print how much is recorded and how it was used.")
@cache_options
@report_options
def command(folder: Path) -> Report:
    """Print what the cache holds, how large it is, how often it was asked, and its largest models."""
    from shapeguard.cache.store import SIZE_LIMIT, GraphCache
    from shapeguard.cache.view import size

    with GraphCache(folder, for_reading=True) as cache:
        figures = cache.statistics()
        graphs, eager = cache.models(), cache.models(eager=True)
    rows = [
        ("folder", str(folder)),
        ("graphs", f"{sum(graphs.values()):,}"),
        ("eager operators", f"{sum(eager.values()):,}"),
        ("models", f"{len(graphs):,}"),
        ("size", f"{size(figures.size_bytes)} of {size(SIZE_LIMIT)}"),
        ("found / not found", f"{figures.hits:,} / {figures.misses:,}"),
    ]
    models = sorted(graphs.items(), key=lambda item: (-item[1], item[0]))
    table = Table(
        columns=("model", "graphs"),
        rows=tuple((name or "-", str(number)) for name, number in models[:10]),
        right=frozenset({1}),
        note=f"{len(models) - 10} models more" if len(models) > 10 else "",
    )
    sections = [Table(columns=("", ""), rows=tuple(rows))]
    return Report(
        tool="cache",
        sections=tuple(sections + ([table] if models else [])),
        document={
            "schema": 1,
            "folder": str(folder.absolute()),
            "graphs": sum(graphs.values()),
            "eager_operators": sum(eager.values()),
            "models": graphs,
            "size_bytes": figures.size_bytes,
            "size_limit_bytes": SIZE_LIMIT,
            "hits": figures.hits,
            "misses": figures.misses,
        },
    )
