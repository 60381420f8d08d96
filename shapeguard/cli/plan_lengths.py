"""Where `shapeguard plan` takes lengths from: a file of numbers, rows of data, a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shapeguard.core.errors import UsageError

if TYPE_CHECKING:
    from shapeguard.buckets.lengths import Lengths


def lengths_from(options: Mapping[str, Any], cut_at: int | None) -> Lengths:
    """Give the lengths of whichever source the options name, cut where that was asked for."""
    if options["run"]:
        found = _of_run(options["run"])
    elif options["data"]:
        from shapeguard.buckets.texts import read_data

        found = read_data(
            options["data"], tokenizer=options["tokenizer"], column=options["column"], split=options["split"]
        )
    else:
        from shapeguard.buckets.lengths import read_lengths

        found = read_lengths(options["lengths"])
    return found.truncated(cut_at) if options["truncate"] and cut_at else found


def _of_run(folder: Path) -> Lengths:
    from shapeguard.buckets.lengths import from_batches, from_calls
    from shapeguard.runs.stream import read_run

    processes = read_run(folder).processes
    batches = [(dict(batch.shapes), times) for each in processes for batch, times in each.batches.items()]
    if batches:
        tokens = (sum(each.tokens[0] for each in processes), sum(each.tokens[1] for each in processes))
        rows = sum((each.rows for each in processes), Counter[int]())
        found = from_batches(batches, tokens=tokens, source=str(folder), rows=rows)
    else:
        shapes = [shape for each in processes for graph in each.compiles for shape in _prompts(graph)]
        found = from_calls(shapes, source=str(folder))
    if not found.counts:
        raise UsageError(f"{folder} saw no batches of tokens", hint="give the lengths with --lengths or --data")
    return found


def _prompts(graph: Any) -> Iterator[tuple[int, ...]]:
    """The shapes of token ids of more than the one token that a decode step takes.

    Where the prompt runs through the model eagerly, the look-up of its tokens shows it.
    """
    is_lookup = graph.kind == "eager" and graph.name.startswith("embedding")
    for part in graph.inputs:
        is_ids = part.path == "indices" if is_lookup else part.path.endswith("input_ids")
        if is_ids and len(part.shape) == 2 and part.shape[1] > 1:
            yield part.shape
