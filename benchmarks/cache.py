"""How fast the graph cache is, beside plain diskcache with pickle in the same run.

    python benchmarks/cache.py [--records 100000]

Times are ratios of medians over interleaved rounds, since other things run on the machine too. Exit code 1 where a
limit is passed: get and put 1.3 times plain diskcache, `ls` of one model 0.2 s, 2 KB of folder a record.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import diskcache

from shapeguard.cache.select import Wanted, select
from shapeguard.cache.store import GraphCache
from shapeguard.cache.view import listed
from shapeguard.core.graphs import GraphInput, GraphKey, GraphRecord, ModelKey

MODELS = 200
ROUND = 500


def records(first: int, number: int) -> Iterator[GraphRecord]:
    """Make records of a size that real ones have."""
    plain = GraphRecord(
        key=GraphKey(graph="", device="simulated", target="trn2", flags=("--model-type transformer",)),
        model=ModelKey(name="", config="0123456789ab"),
        kind="forward",
        name="model_default_1_forward_1",
        constants=(("len(args)", "1"), ("use_cache", "False")),
        modes=(("autocast", "bfloat16"), ("grad", "True"), ("inference", "False"), ("training", "True")),
        nodes=1200,
        operators={"mm": 225, "add.Tensor": 130, "mul.Tensor": 290, "view": 610, "_softmax": 32, "silu": 32},
        compile_s=312.4,
        versions={"torch": "2.13.0", "transformers": "5.24.0", "python": "3.11.7", "shapeguard": "0.1.0"},
        jobs=("train",),
        source="trace",
    )
    for n in range(first, first + number):
        shape = (8, 64 + n % 4096)
        names = ("input_ids", "attention_mask", "labels")
        yield replace(
            plain,
            key=replace(plain.key, graph=f"{n:064x}"),
            model=replace(plain.model, name=f"Model{n % MODELS}ForCausalLM"),
            inputs=tuple(GraphInput(path=path, shape=shape, dtype="int64") for path in names),
        )


def timed(work: Callable[[], object]) -> float:
    """Give seconds."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def filled(folder: Path, number: int) -> tuple[GraphCache, diskcache.Cache]:
    """Give both caches with the records in them."""
    # The clock runs ahead of the rows', so that each get has a use to write down.
    ours = GraphCache(folder / "ours", clock=lambda: time.time() + 3600)
    ours.put_many(records(0, number))
    plain = diskcache.Cache(str(folder / "plain"))
    with plain.transact():
        for record in records(0, number):
            plain.set(record.key.id, record)
    return ours, plain


def rounds(ours: GraphCache, plain: diskcache.Cache, number: int, repeat: int) -> dict[str, list[float]]:
    """Time puts of new records and gets of old ones, one cache after the other, again and again."""
    found: dict[str, list[float]] = {"put": [], "put plain": [], "get": [], "get plain": []}
    for turn in range(repeat):
        new = list(records(number + turn * ROUND, ROUND))
        old = [record.key.id for record in records(turn * ROUND % max(1, number - ROUND), ROUND)]
        works: list[tuple[str, Callable[[], object]]] = [
            ("put", lambda new=new: [ours.put(each) for each in new]),
            ("put plain", lambda new=new: [plain.set(each.key.id, each) for each in new]),
            ("get", lambda old=old: [ours.get(each) for each in old]),
            ("get plain", lambda old=old: [plain.get(each) for each in old]),
        ]
        for name, work in works if turn % 2 else [works[1], works[0], works[3], works[2]]:
            found[name].append(timed(work) / ROUND * 1e6)
    return found


def ls(folder: Path) -> None:
    """Do what `shapeguard cache ls MODEL` does, from opening to text."""
    with GraphCache(folder) as cache:
        found = select(cache.records("Model7ForCausalLM"), Wanted(model="Model7ForCausalLM"))
        listed(found, limit=100)


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, plain = filled(folder, options.records)
        medians = {k: statistics.median(v) for k, v in rounds(ours, plain, options.records, options.rounds).items()}
        total = ours.statistics().records
        ours.close()
        ls_s = statistics.median(timed(lambda: ls(folder / "ours")) for _ in range(7))
        size = sum(path.stat().st_size for path in (folder / "ours").rglob("*") if path.is_file()) / total
    results = [
        ("put", medians["put"] / medians["put plain"], 1.3, f"{medians['put']:.0f} µs"),
        ("get", medians["get"] / medians["get plain"], 1.3, f"{medians['get']:.0f} µs"),
        ("ls of one model, s", ls_s, 0.2, f"{total // MODELS} records of {total}"),
        ("bytes a record", size, 2000, ""),
    ]
    for title, value, limit, note in results:
        print(f"{title:20} {value:10.3f}  limit {limit:7}  {'ok' if value < limit else 'TOO MUCH':8}  {note}")
    return int(any(value >= limit for _, value, limit, _ in results))


if __name__ == "__main__":
    sys.exit(main())
