"""A database that was cut off or written over: what stands on whole pages is saved, whatever is gone."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from graph_records import Shapeguard, filled, record

from shapeguard.cache.carve import carved
from shapeguard.cache.check import check
from shapeguard.cache.codec import decode, encode
from shapeguard.cache.store import GraphCache

NUM = 400
MANY = {f"operator.{number}": number for number in range(600)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache some of whose records do not fit on a page."""
    folder = tmp_path_factory.mktemp("whole") / "cache"
    return filled(folder, *(record(n, operators=MANY if n % 20 == 0 else {"mm": n}) for n in range(NUM)))


def _saved(folder: Path) -> int:
    with GraphCache(folder) as cache:
        return len(list(cache.records()))


@pytest.mark.parametrize("part", [0.99, 0.8, 0.5, 0.2])
def test_of_a_database_that_was_cut_off_the_rows_on_the_rest_are_saved(
    tmp_path: Path, whole: Path, part: float
) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(whole, folder)
    database = folder / "v1" / "cache.db"
    os.truncate(database, int(database.stat().st_size * part))
    (trouble,) = check(folder, repair=True)
    saved = _saved(folder)
    # Indexes take some pages too, and a row that runs over several may lose one.
    assert saved >= NUM * (part - 0.1)
    assert trouble.mended == f"{saved} records saved into a new one, the old one is in broken-1"
    assert check(folder) == []


def test_a_database_without_its_first_pages_gives_the_others(tmp_path: Path, whole: Path) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(whole, folder)
    database = folder / "v1" / "cache.db"
    data = database.read_bytes()
    database.write_bytes(bytes(4096 * 4) + data[4096 * 4 :])
    assert len(check(folder, repair=True)) == 1
    assert _saved(folder) > NUM * 0.9


def test_rows_that_are_in_the_log_only_are_saved_too(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", *(record(n) for n in range(20)))
    database = folder / "v1" / "cache.db"
    holder = sqlite3.connect(database)  # so that the log is not written back and removed
    holder.execute("SELECT COUNT(*) FROM Cache").fetchall()
    filled(folder, *(record(n) for n in range(20, 40)))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("cache.db", "cache.db-wal"):
        shutil.copy(folder / "v1" / name, copy / name)
    holder.close()
    assert {key for key, _ in carved(copy / "cache.db")} == {record(n).key.id for n in range(40)}


@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_is_carved_out_of_rubble_is_taken_for_a_record_that_it_is_not(
    tmp_path: Path, whole: Path, seed: int
) -> None:
    chance = random.Random(seed)
    data = bytearray((whole / "v1" / "cache.db").read_bytes())
    for _ in range(3000):
        data[chance.randrange(len(data))] = chance.randrange(256)
    broken = tmp_path / "cache" / "v1"
    broken.mkdir(parents=True)
    (broken / "cache.db").write_bytes(bytes(data[: chance.randrange(len(data))]))
    check(tmp_path / "cache", repair=True)
    assert check(tmp_path / "cache") == []


def test_pages_that_lead_in_circles_end(tmp_path: Path) -> None:
    page = bytearray(4096)
    page[0] = 13
    page[3:5] = (2000).to_bytes(2, "big")
    cell = bytes([0xBF, 0x80, 0x00, 0x01]) + bytes(300)  # a row of a million bytes
    page[3000 : 3000 + len(cell)] = cell
    for each in range(1000):
        page[8 + 2 * each : 10 + 2 * each] = (3000).to_bytes(2, "big")
    for offset in range(3400, 4092, 4):
        page[offset : offset + 4] = (2).to_bytes(4, "big")
    page[:4] = b"\x0d\0\0\0"
    (tmp_path / "cache.db").write_bytes(bytes(page) * 50)
    assert list(carved(tmp_path / "cache.db")) == []


def test_a_link_is_not_carved(tmp_path: Path, whole: Path) -> None:
    (tmp_path / "cache.db").symlink_to(whole / "v1" / "cache.db")
    assert list(carved(tmp_path / "cache.db")) == []
    rows = dict(carved(whole / "v1" / "cache.db"))
    assert len(rows) == NUM
    assert all(encode(decode(value)) == value for value in rows.values())


def test_threads_that_open_a_cache_for_the_first_time_at_once_all_can(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    for round in range(15):
        barrier = threading.Barrier(4)

        def put(number: int, folder: Path = tmp_path / f"c{round}", barrier: threading.Barrier = barrier) -> None:
            barrier.wait(timeout=60)
            try:
                with GraphCache(folder) as cache:
                    cache.put(record(number))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert failures == []
        assert _saved(tmp_path / f"c{round}") == 4


def test_a_repair_says_how_many_it_saved(
    shapeguard: Shapeguard, tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(whole, folder)
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(folder))
    database = folder / "v1" / "cache.db"
    os.truncate(database, database.stat().st_size // 2)
    ran = shapeguard("cache", "ls")
    assert (ran.code, "hint: shapeguard cache verify --repair" in ran.err) == (2, True)
    assert "records saved into a new one" in shapeguard("cache", "verify", "--repair").out
    assert shapeguard("cache", "ls").code == 0
