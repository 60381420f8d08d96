"""Two records of one graph as one: what is known of it is never lost, in whatever order it comes."""

from __future__ import annotations

from dataclasses import replace

from shapeguard.cache.codec import encode
from shapeguard.core.graphs import GraphRecord


def join(one: GraphRecord, other: GraphRecord) -> GraphRecord:
    """Give all that both know; where they disagree, the one seen last counts. Order and repetition don't matter."""
    older, newer = sorted((one, other), key=lambda record: (record.last_seen, encode(record)))
    seen = [record.first_seen for record in (one, other) if record.first_seen]
    return replace(
        newer,
        name=newer.name or older.name,
        tp=newer.tp or older.tp,
        nodes=newer.nodes or older.nodes,
        operators=newer.operators or older.operators,
        compile_s=newer.compile_s if newer.compile_s is not None else older.compile_s,
        neff=newer.neff or older.neff,
        versions={**older.versions, **newer.versions},
        neuron_key=newer.neuron_key or older.neuron_key,
        persistent_key=newer.persistent_key or older.persistent_key,
        jobs=tuple(sorted({*one.jobs, *other.jobs})),
        first_seen=min(seen, default=0),
        hits=max(one.hits, other.hits),
    )
