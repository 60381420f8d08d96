"""Processes that are killed while they write: what was acknowledged is there, and nothing half-written is read."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from graph_records import filled, record
from neff_folders import NEFF, torch_neuron

from shapeguard.cache.archive import Archive, write_archive
from shapeguard.cache.check import check
from shapeguard.cache.pull import plan_pull, pull
from shapeguard.cache.push import plan_push, push
from shapeguard.cache.remote import Remote, open_remote
from shapeguard.cache.store import GraphCache
from shapeguard.core.graphs import Neff

KILLS = [5, pytest.param(125, marks=pytest.mark.soak)]
NUM = 40


def _killed(work: Callable[[int], None], *, after_s: float) -> list[str]:
    """Run work in a child, kill it after a while, and give the lines it wrote until then."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code = 1
        try:
            work(writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read().decode()
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    # A torn last line was not acknowledged.
    return data.split("\n")[:-1]


@pytest.mark.parametrize("kills", KILLS)
def test_what_a_killed_writer_was_told_is_kept_is_kept(tmp_path: Path, kills: int) -> None:
    folder = tmp_path / "cache"
    chance = random.Random(kills)
    acknowledged: set[str] = set()
    for kill in range(kills):

        def write(pipe: int, first: int = kill * 100_000) -> None:
            with GraphCache(folder) as cache:
                for n in range(first, first + 100_000):
                    done = cache.put(record(n))
                    os.write(pipe, f"{done.key.id}\n".encode())

        acknowledged |= set(_killed(write, after_s=chance.uniform(0.0, 0.15)))
    with GraphCache(folder) as cache:
        assert [id for id in acknowledged if cache.get(id) is None] == []
    assert check(folder) == []


@pytest.mark.parametrize("kills", KILLS)
def test_a_killed_push_leaves_no_manifest_that_names_what_is_not_there(tmp_path: Path, kills: int) -> None:
    chance = random.Random(kills)
    (tmp_path / "remote").mkdir()
    url = f"file://{tmp_path}/remote"
    for kill in range(kills):
        records = [record(kill * 1000 + n) for n in range(NUM)]

        def send(pipe: int, records: list = records) -> None:  # type: ignore[type-arg]
            remote = open_remote(url)
            push(plan_push(records, remote), remote)
            os.write(pipe, b"done\n")

        told = _killed(send, after_s=chance.uniform(0.0, 0.3))
        found = _pulled(open_remote(url), tmp_path / f"check-{kill}")
        if told:
            assert {each.key.id for each in records} <= found
    # What was broken off is resumed by pushing again.
    send_all = [record(kill * 1000 + n) for kill in range(kills) for n in range(NUM)]
    remote = open_remote(url)
    push(plan_push(send_all, remote), remote)
    assert _pulled(remote, tmp_path / "end") == {each.key.id for each in send_all}


def _pulled(remote: Remote, folder: Path) -> set[str]:
    """Pull all there is: it raises where a manifest names what is not there or not whole."""
    with GraphCache(folder) as cache:
        plan = plan_pull(remote, cache)
        assert plan.troubles == ()
        pull(plan, remote, cache)
        return {each.key.id for each in cache.records()}


def _sources(tmp_path: Path) -> tuple[Remote, Remote, set[str]]:
    """A folder and an archive with the same records, and a NEFF each for some."""
    neffs = tmp_path / "neffs"
    records = []
    for n in range(NUM):
        key = f"{n:02x}{n:02x}" + "0" * 28
        data = NEFF + bytes([n]) * 20_000
        torch_neuron(neffs, key, data)
        neff = Neff(
            digest=hashlib.sha256(data).hexdigest(), size_bytes=len(data), path=f"{key[:2]}/{key[2:4]}/{key}.neff"
        )
        records.append(record(n, neff=neff))
    (tmp_path / "remote").mkdir()
    remote = open_remote(f"file://{tmp_path}/remote")
    push(plan_push(records, remote, neff_dir=neffs), remote)
    write_archive(tmp_path / "all.tar", plan_push(records, None, neff_dir=neffs))
    return remote, Archive(tmp_path / "all.tar"), {each.key.id for each in records}


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("how", ["pull", "import"])
def test_a_killed_pull_or_import_leaves_whole_files_and_whole_records(tmp_path: Path, kills: int, how: str) -> None:
    chance = random.Random(kills)
    remote, archive, everything = _sources(tmp_path)
    source = remote if how == "pull" else archive
    for kill in range(kills):
        folder, neffs = tmp_path / f"cache-{kill}", tmp_path / f"neffs-{kill}"

        def fetch(pipe: int, folder: Path = folder, neffs: Path = neffs) -> None:
            with GraphCache(folder) as cache:
                pull(plan_pull(source, cache, neff_dir=neffs), source, cache, neff_dir=neffs)
            os.write(pipe, b"done\n")

        told = _killed(fetch, after_s=chance.uniform(0.0, 0.5))
        assert check(folder) == []
        with GraphCache(folder) as cache:
            seen = {each.key.id: each for each in cache.records()}
            assert not told or seen.keys() == everything
            # A record is to be seen only when its file is there, whole.
            for each in seen.values():
                assert each.neff is not None
                data = (neffs / each.neff.path).read_bytes()
                assert hashlib.sha256(data).hexdigest() == each.neff.digest
            for path in neffs.rglob("*.neff"):
                assert path.stat().st_size == len(NEFF) + 20_000
            # And trying again brings the rest.
            pull(plan_pull(source, cache, neff_dir=neffs), source, cache, neff_dir=neffs)
            assert {each.key.id for each in cache.records()} == everything
        assert len(list(neffs.rglob("*.neff"))) == NUM


def test_a_cache_whose_writer_was_killed_in_the_middle_opens_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", record(1))

    def hold(pipe: int) -> None:
        cache = GraphCache(folder)
        with cache._rows.transact():
            cache._rows.set(record(2).key.id, b"sgr\x01", tag="graph/x")
            os.write(pipe, b"held\n")
            time.sleep(30)

    assert _killed(hold, after_s=0.5) == ["held"]
    with GraphCache(folder) as cache:
        assert cache.get(record(2).key.id) is None
        cache.put(record(3))
    assert check(folder) == []
