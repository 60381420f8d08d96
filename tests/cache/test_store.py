from __future__ import annotations

import multiprocessing
import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest
from graph_records import neff, record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapeguard.cache.check import check
from shapeguard.cache.join import join
from shapeguard.cache.store import GraphCache
from shapeguard.core.errors import CacheError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_record_comes_back_as_it_was_put(folder: Path) -> None:
    with GraphCache(folder, clock=lambda: 1000.0) as cache:
        cache.put(record(1))
    with GraphCache(folder) as cache:
        assert cache.get(record(1).key.id) == replace(record(1), first_seen=1000, last_seen=1000)
        assert cache.get(record(2).key.id) is None


def test_putting_a_graph_again_loses_nothing_that_was_known(folder: Path) -> None:
    with GraphCache(folder, clock=lambda: 1000.0) as cache:
        cache.put(record(1, compile_s=312.0, neff=neff(5), jobs=("train",)))
    with GraphCache(folder, clock=lambda: 2000.0) as cache:
        cache.put(record(1, jobs=("eval",)))
        found = cache.get(record(1).key.id)
    assert found is not None
    assert (found.compile_s, found.neff, found.jobs) == (312.0, neff(5), ("eval", "train"))
    assert (found.first_seen, found.last_seen, found.hits) == (1000, 2000, 0)


def test_a_run_that_needs_a_known_graph_counts_as_a_hit(folder: Path) -> None:
    with GraphCache(folder) as cache:
        assert cache.put_many([record(1), record(2)], is_use=True) == 2
        assert cache.put_many([record(1)], is_use=True) == 0
        hits = [each.hits for number in (1, 2) if (each := cache.get(record(number).key.id))]
    assert hits == [1, 0]


def test_simulated_and_real_records_of_one_program_never_mix(folder: Path) -> None:
    simulated = record(1)
    real = replace(simulated, key=replace(simulated.key, device="real"), compile_s=300.0)
    with GraphCache(folder) as cache:
        cache.put(real)
        assert cache.get(simulated.key.id) is None
        cache.put(simulated)
        assert {each.key.device: each.compile_s for each in cache.records()} == {"real": 300.0, "simulated": None}


def test_records_are_listed_by_the_beginning_of_the_model(folder: Path) -> None:
    with GraphCache(folder) as cache:
        cache.put_many([record(n, model=name) for n, name in enumerate(["Llama", "LlamaForX", "Qwen", "Lime"])])
        cache.put(record(9, kind="eager", name="add.Tensor", model="Llama"))
        assert sorted(each.model.name for each in cache.records("Llama")) == ["Llama", "LlamaForX"]
        assert [each.name for each in cache.records("Llama", eager=True)] == ["add.Tensor"]
        assert cache.models() == {f"{name}@0123456789ab": 1 for name in ("Lime", "Llama", "LlamaForX", "Qwen")}


def test_what_was_not_used_for_longest_goes_first(folder: Path) -> None:
    with GraphCache(folder) as cache:
        cache.put_many(record(n) for n in range(50))
    with GraphCache(folder, clock=lambda: time.time() + 1000) as cache:
        cache.get(record(3).key.id)
    with GraphCache(folder, size_limit=400_000) as cache:
        cache.put_many(record(n) for n in range(1000, 2000))
        assert cache.statistics().size_bytes < 500_000
        left = {each.key.id for each in cache.records()}
    assert record(3).key.id in left
    assert record(4).key.id not in left
    assert check(folder) == []


def test_hits_and_misses_of_all_processes_are_counted(folder: Path) -> None:
    with GraphCache(folder) as cache:
        cache.put(record(1))
        cache.get(record(1).key.id)
    with GraphCache(folder) as cache:
        cache.get(record(1).key.id)
        cache.get(record(2).key.id)
        found = cache.statistics()
    assert (found.records, found.hits, found.misses) == (1, 2, 1)


def test_the_folder_is_private_and_marked_as_a_cache(folder: Path) -> None:
    old = os.umask(0)
    try:
        GraphCache(folder).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_only_the_ids_of_records_are_keys(folder: Path) -> None:
    with GraphCache(folder) as cache, pytest.raises(CacheError, match=r"^'\.\./x' is no id of a record$"):
        cache.get("../x")


def _write(folder: Path, first: int, number: int) -> None:
    with GraphCache(folder) as cache:
        for n in range(first, first + number):
            cache.put(record(n))
            cache.put(record(0, jobs=(f"job-{first}",)))
            assert cache.get(record(n).key.id) is not None


@pytest.mark.parametrize(("processes", "number"), [(3, 60), pytest.param(16, 10_000, marks=pytest.mark.soak)])
def test_many_processes_write_at_once_and_lose_nothing(folder: Path, processes: int, number: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    starts = [1 + p * number for p in range(processes)]
    running = [spawn.Process(target=_write, args=(folder, first, number)) for first in starts]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert [each.exitcode for each in running] == [0] * processes
    with GraphCache(folder) as cache:
        assert cache.statistics().records == processes * number + 1
        shared = cache.get(record(0).key.id)
    assert shared is not None
    assert set(shared.jobs) == {f"job-{first}" for first in starts}
    assert check(folder) == []


def test_a_forked_child_uses_the_cache_of_its_parent(folder: Path) -> None:
    with GraphCache(folder) as cache:
        cache.put(record(1))
        pid = os.fork()
        if pid == 0:
            is_fine = cache.get(record(1).key.id) is not None and bool(cache.put(record(2)))
            os._exit(0 if is_fine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert cache.get(record(2).key.id) is not None


_records = st.builds(
    record,
    number=st.integers(0, 3),
    compile_s=st.none() | st.floats(0, 1e4),
    neff=st.none() | st.builds(neff, st.integers(0, 9)),
    jobs=st.lists(st.sampled_from("abc"), unique=True).map(lambda jobs: tuple(sorted(jobs))),
    nodes=st.integers(0, 5),
    first_seen=st.integers(0, 20),
    last_seen=st.integers(1, 20),
    hits=st.integers(0, 5),
)


@given(_records, _records)
def test_joining_is_the_same_in_either_order_and_when_repeated(one: object, other: object) -> None:
    a, b = one, replace(other, key=one.key)  # type: ignore[attr-defined, type-var]
    both = join(a, b)  # type: ignore[arg-type]
    assert both == join(b, a)  # type: ignore[arg-type]
    assert join(both, a) == both  # type: ignore[arg-type]
    assert join(both, b) == both  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["put", "get", "delete", "many"]), st.integers(0, 5)), max_size=30))
def test_the_cache_is_whole_after_any_sequence_of_operations(tmp_path_factory, steps: list[tuple[str, int]]) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("cache")
    expected: set[int] = set()
    with GraphCache(folder) as cache:
        for verb, number in steps:
            id = record(number).key.id
            if verb == "put":
                cache.put(record(number))
                expected.add(number)
            elif verb == "many":
                cache.put_many([record(number), record(number + 1)])
                expected |= {number, number + 1}
            elif verb == "delete":
                assert cache.delete([id]) == (number in expected)
                expected.discard(number)
            else:
                assert (cache.get(id) is not None) == (number in expected)
        assert {each.key.id for each in cache.records()} == {record(n).key.id for n in expected}
    assert check(folder) == []
