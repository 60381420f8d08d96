"""Folders and archives that somebody prepared: no code runs, nothing is written elsewhere, what is wrong is said."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from graph_records import Shapeguard, filled, record

from shapeguard.cache import codec

VERBS = (
    ("ls",),
    ("ls", "--eager"),
    ("status",),
    ("lookup", "LlamaForCausalLM", "8x512"),
    ("why", "LlamaForCausalLM", "8x640"),
    ("prune", "--older-than", "1000d"),
    ("export", "out.tar"),
    ("verify",),
)


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.path}",))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(folder))
    return filled(folder, *(record(n) for n in range(5)))


def _sql(cache: Path, query: str, *parameters: object) -> None:
    con = sqlite3.connect(cache / "v1" / "cache.db")
    con.execute(query, parameters)
    con.commit()
    con.close()


def _row(cache: Path, **columns: object) -> None:
    """Put a row beside those of the cache."""
    plain: dict[str, object] = {
        "key": "ab" * 20,
        "raw": 1,
        "store_time": time.time(),
        "access_time": time.time(),
        "tag": "graph/LlamaForCausalLM@0123456789ab",
        "mode": 1,
        "value": codec.encode(record(77)),
    } | columns
    names = ", ".join(plain)
    _sql(cache, f"INSERT INTO Cache ({names}) VALUES ({', '.join('?' * len(plain))})", *plain.values())


def _newer(data: bytes) -> bytes:
    return data[:3] + b"\x09" + data[4:]


def _big(data: bytes) -> bytes:
    return data + b" " * codec.MAX_BYTES


ROWS: dict[str, tuple[Callable[[Path], dict[str, object]], str]] = {
    "a pickle": (lambda mark: {"mode": 4, "value": pickle.dumps(Evil(mark))}, "it holds a pickle"),
    "a pickled key": (lambda mark: {"raw": 0, "key": pickle.dumps(Evil(mark))}, "its key is not one"),
    "a pickle in a file": (lambda mark: {"mode": 4, "filename": "../evil.val", "value": None}, "it holds a pickle"),
    "a file elsewhere": (lambda mark: {"mode": 2, "filename": "../../secret", "value": None}, "of another kind"),
    "a text": (lambda mark: {"mode": 1, "value": "text"}, "its value is no bytes"),
    "a number": (lambda mark: {"mode": 1, "value": 5}, "its value is no bytes"),
    "no value": (lambda mark: {"value": None}, "its value is no bytes"),
    "a key that is a path": (lambda mark: {"key": "../../etc/passwd"}, "its key is not one"),
    "a key that is a number": (lambda mark: {"key": 5}, "its key is not one"),
    "another graph": (lambda mark: {}, "it is the record of another graph"),
    "foreign bytes": (lambda mark: {"value": b"hello"}, "the record has no header of shapeguard's"),
    "cut off": (lambda mark: {"value": codec.encode(record(77))[:60]}, "the record cannot be read"),
    "deep": (lambda mark: {"value": b"sgr\x01" + b"[" * 500_000}, "the record cannot be read"),
    "another type": (lambda mark: {"value": b'sgr\x01{"key": 5}'}, "the record cannot be read"),
    "huge": (lambda mark: {"value": _big(codec.encode(record(77)))}, "more than any record"),
    "larger than memory should hold": (lambda mark: {"value": bytes(6 << 20)}, "more than any record"),
    "a tag of its own": (
        lambda mark: {"key": record(77).key.id, "tag": "graph/\x1b[31mX"},
        "it is indexed under another model",
    ),
    "no tag": (lambda mark: {"key": record(77).key.id, "tag": None}, "it is indexed under another model"),
}


def _all_verbs(shapeguard: Shapeguard) -> None:
    for verb in VERBS:
        ran = shapeguard("cache", *verb)
        assert ran.code in (0, 1, 2), verb
        assert "Traceback" not in ran.err, (verb, ran.err)
        if ran.code == 2:
            assert ran.err.startswith("error: "), verb


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_that_shapeguard_did_not_write_is_never_loaded_and_can_be_removed(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path, kind: str
) -> None:
    mark, secret = tmp_path / "mark", tmp_path / "secret"
    secret.write_text("secret")
    (cache / "evil.val").write_bytes(pickle.dumps(Evil(mark)))
    columns, said = ROWS[kind]
    _row(cache, **columns(mark))
    _all_verbs(shapeguard)
    ran = shapeguard("cache", "verify")
    assert ran.code == 1
    assert said in ran.out
    assert shapeguard("cache", "verify", "--repair").code == 0
    assert shapeguard("cache", "verify").out in ("5 records, all sound\n", "6 records, all sound\n")
    assert not mark.exists()
    assert secret.read_text() == "secret"
    assert (cache / "evil.val").exists()


def test_one_row_that_cannot_be_read_does_not_hide_the_others(shapeguard: Shapeguard, cache: Path) -> None:
    _row(cache, key=record(77).key.id, value=_newer(codec.encode(record(77))))
    _row(cache, key=record(78).key.id, value=b"hello")
    _row(cache, key=record(79).key.id, access_time=float("inf"), value=codec.encode(record(79)))
    ran = shapeguard("cache", "ls", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert len(found["records"]) == 6
    assert found["skipped"] == {
        record(77).key.id: "the record has schema 9, this shapeguard reads up to 1",
        record(78).key.id: "the record has no header of shapeguard's",
    }
    assert "2 rows could not be read" in shapeguard("cache", "lookup", "LlamaForCausalLM", "8x512").err
    assert shapeguard("cache", "why", "LlamaForCausalLM", "8x600").code == 0
    assert shapeguard("cache", "show", record(78).key.id).err == (
        f"error: {record(78).key.id}: the record has no header of shapeguard's\n"
        "hint: shapeguard cache verify --repair\n"
    )


def test_a_record_of_a_newer_shapeguard_is_said_and_stays(shapeguard: Shapeguard, cache: Path) -> None:
    _row(cache, key=record(77).key.id, value=_newer(codec.encode(record(77))))
    ran = shapeguard("cache", "verify", "--repair", "--json")
    assert ran.code == 0
    (problem,) = json.loads(ran.out)["problems"]
    assert problem["message"] == "the record has schema 9, this shapeguard reads up to 1"
    assert problem["note"]
    assert json.loads(shapeguard("cache", "verify", "--json").out)["records"] == 6


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("INSERT INTO Settings VALUES ('sqlite_temp_store_directory', '/tmp')", "'sqlite_temp_store_directory'"),
        ("INSERT INTO Settings VALUES ('_disk', 'x')", "'_disk'"),
        ("INSERT INTO Settings VALUES ('disk_evil', 'x')", "'disk_evil'"),
        ("UPDATE Settings SET value = 'x' WHERE key = 'count'", "'x' as count"),
        ("CREATE VIEW Evil AS SELECT 1", "view 'Evil'"),
        ("CREATE TRIGGER Evil AFTER INSERT ON Cache BEGIN SELECT load_extension('x'); END", "trigger 'Evil'"),
        ("CREATE TABLE Other (x)", "table 'Other'"),
    ],
)
def test_a_database_that_says_more_than_ours_is_not_opened_and_its_records_can_be_saved(
    shapeguard: Shapeguard, cache: Path, query: str, said: str
) -> None:
    _sql(cache, query)
    _all_verbs(shapeguard)
    ran = shapeguard("cache", "ls")
    assert ran.code == 2
    assert said in ran.err
    assert "hint: shapeguard cache verify --repair" in ran.err
    ran = shapeguard("cache", "verify", "--repair")
    assert ran.code == 0
    assert "5 records saved into a new one, the old one is in broken-1" in ran.out
    assert shapeguard("cache", "verify").out == "5 records, all sound\n"


@pytest.mark.parametrize("count", [10**18, -5])
def test_a_wrong_count_is_said_and_mended(shapeguard: Shapeguard, cache: Path, count: int) -> None:
    _sql(cache, "UPDATE Settings SET value = ? WHERE key = 'count'", count)
    _all_verbs(shapeguard)
    assert "the number of records it states is wrong" in shapeguard("cache", "verify").out
    shapeguard("cache", "verify", "--repair")
    assert shapeguard("cache", "verify").out == "5 records, all sound\n"


def _cut(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size * 2 // 3)


def _scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    chance = random.Random(5)
    for _ in range(200):
        data[chance.randrange(4096, len(data))] = chance.randrange(256)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _scribble,
        lambda path: path.write_bytes(b"not a database" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[:50]),
        lambda path: path.write_bytes(b""),
    ],
)
def test_a_damaged_database_is_said_and_what_can_be_read_is_saved(
    shapeguard: Shapeguard, cache: Path, damage: Callable[[Path], object]
) -> None:
    damage(cache / "v1" / "cache.db")
    _all_verbs(shapeguard)
    assert shapeguard("cache", "verify", "--repair").code == 0
    assert shapeguard("cache", "verify").code == 0
    filled(cache, record(9))
    assert shapeguard("cache", "verify").code == 0


@pytest.mark.parametrize("name", ["cache.db", "cache.db-wal", "cache.db-shm"])
def test_a_link_in_place_of_the_database_is_not_followed(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    path = cache / "v1" / name
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    _all_verbs(shapeguard)
    ran = shapeguard("cache", "ls")
    assert (ran.code, f"{path} is no plain file" in ran.err) == (2, True)
    assert victim.read_bytes() == b""
    shapeguard("cache", "verify", "--repair")
    assert victim.read_bytes() == b""
    assert shapeguard("cache", "ls").code == 0


def test_a_link_in_place_of_the_folder_of_records_is_not_followed(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path
) -> None:
    shutil.rmtree(cache / "v1")
    (tmp_path / "elsewhere").mkdir()
    (cache / "v1").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    _all_verbs(shapeguard)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_everyone_can_write_to_is_refused(shapeguard: Shapeguard, cache: Path) -> None:
    cache.chmod(0o777)
    ran = shapeguard("cache", "ls")
    assert ran.code == 2
    assert ran.err == f"error: the cache folder {cache} can be written by everyone\nhint: chmod 700 {cache}\n"


def _archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in members:
            info.size = len(data) if info.size == 0 else info.size
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _member(name: str, data: bytes = b"x", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in changes.items():
        setattr(info, key, value)
    return info, data


def _header(name: str, kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


OBJECT = f"objects/ab/{'ab' * 32}"
ARCHIVES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a name outside": (lambda good: _archive(_member("../../evil")), "a name that shapeguard does not give"),
    "a whole path": (lambda good: _archive(_member("/etc/evil")), "a name that shapeguard does not give"),
    "a name of objects with dots": (lambda good: _archive(_member("objects/../x")), "a name that shapeguard does not"),
    "a link": (
        lambda good: _archive(_member(OBJECT, b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")),
        "no plain file",
    ),
    "a hard link": (lambda good: _archive(_member(OBJECT, b"", type=tarfile.LNKTYPE, linkname="x")), "no plain file"),
    "a header that says gigabytes of the next": (
        lambda good: _header("x", tarfile.XHDTYPE, 6 << 30) + good,
        "no plain file",
    ),
    "a long name of gigabytes": (
        lambda good: _header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 6 << 30) + good,
        "no plain file",
    ),
    "a sparse file": (lambda good: _header(OBJECT, tarfile.GNUTYPE_SPARSE, 0) + bytes(1024), "no plain file"),
    "a name of other letters": (
        lambda good: _archive(_member(f"objects/AB/{'AB' * 32}")),
        "a name that shapeguard does not give",
    ),
    "a digest of another kind": (
        lambda good: _archive(_member(f"objects/ab/{'ab' * 20}")),
        "a name that shapeguard does not give",
    ),
    "a device": (lambda good: _archive(_member(OBJECT, b"", type=tarfile.CHRTYPE)), "no plain file"),
    "a name twice": (lambda good: _archive(_member(OBJECT), _member(OBJECT)), "a name that shapeguard does not give"),
    "cut off": (lambda good: good.rstrip(b"\0")[:-100], "cut off"),
    "cut off at its end": (lambda good: good[:700], "cut off"),
    "not an archive": (lambda good: b"hello" * 1000, "is no archive of the cache"),
    "empty": (lambda good: b"", "is no archive of the cache"),
    "compressed": (lambda good: __import__("gzip").compress(good), "is no archive of the cache"),
    "a zip": (lambda good: b"PK\x03\x04" + bytes(2000), "is no archive of the cache"),
    "one byte changed": (lambda good: good.replace(b'"nodes":1200', b'"nodes":1201'), "another digest than its name"),
    "a manifest changed": (lambda good: good.replace(b'"lock": ""', b'"lock": 55'), "cannot be read"),
    "no manifest": (lambda good: _archive(_member(OBJECT)), "holds no records"),
    "a size that lies": (
        lambda good: good.replace(good[124:136], b"77777777777\0"),
        "cut off",
    ),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_prepared_archive_writes_nothing_and_is_named(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path, kind: str
) -> None:
    assert shapeguard("cache", "export", "good.tar").code == 0
    make, said = ARCHIVES[kind]
    Path("bad.tar").write_bytes(make(Path("good.tar").read_bytes()))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    ran = shapeguard("cache", "import", "bad.tar", "--cache-dir", "other", "--neff-dir", "neffs")
    assert ran.code == 2, ran.out
    assert said in ran.err + ran.out
    assert "Traceback" not in ran.err
    shutil.rmtree("other", ignore_errors=True)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_the_same_records_give_the_same_archive(shapeguard: Shapeguard, cache: Path) -> None:
    shapeguard("cache", "export", "one.tar")
    filled(cache, record(3))
    shapeguard("cache", "ls")
    other = filled(Path("other"), *(record(n) for n in reversed(range(5))))
    shapeguard("cache", "export", "two.tar", "--cache-dir", str(other))
    assert Path("one.tar").read_bytes() == Path("two.tar").read_bytes()


def test_an_archive_fills_another_cache(shapeguard: Shapeguard, cache: Path) -> None:
    shapeguard("cache", "export", "one.tar")
    ran = shapeguard("cache", "import", "one.tar", "--cache-dir", "other")
    assert ran.out.startswith("took 5 records and 0 NEFFs")
    shapeguard("cache", "export", "two.tar", "--cache-dir", "other")
    assert Path("one.tar").read_bytes() == Path("two.tar").read_bytes()
