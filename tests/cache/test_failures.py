"""Disks that are full, folders that cannot be written, locks that are held or missing: a clear line and exit code 2."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from graph_records import filled, record

from shapeguard.cache.check import check
from shapeguard.cache.fill import fill, known
from shapeguard.cache.store import GraphCache
from shapeguard.core.errors import CacheError
from shapeguard.runs.remember import remember


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that another user can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _run(
    *args: str,
    cache: Path,
    before: Sequence[str] = (),
    prepare: Callable[[], None] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-m", "shapeguard", "cache", *args],
        env={"PATH": os.environ["PATH"], "SHAPEGUARD_CACHE_DIR": str(cache), "HOME": "/nonexistent", **environment},
        preexec_fn=prepare,
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )


def _is_one_error(ran: subprocess.CompletedProcess[str]) -> bool:
    lines = ran.stderr.splitlines()
    return ran.returncode == 2 and len(lines) == 2 and lines[0].startswith("error: ") and lines[1].startswith("hint: ")


# Root may read and write whatever the modes of files say, unless it gives these two up.
UNABLE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"] if os.geteuid() == 0 else []
needs_modes = pytest.mark.skipif(bool(UNABLE) and shutil.which("setpriv") is None, reason="root without setpriv")


@needs_modes
def test_a_folder_that_cannot_be_read_is_one_line(home: Path) -> None:
    folder = filled(home / "cache", record(1))
    folder.chmod(0o000)
    ran = _run("ls", cache=folder, before=UNABLE)
    folder.chmod(0o700)
    assert _is_one_error(ran), ran.stderr
    assert f"cannot use the cache folder {folder}" in ran.stderr


@needs_modes
@pytest.mark.parametrize("is_open_elsewhere", [False, True])
def test_a_cache_that_cannot_be_written_to_can_be_read(home: Path, is_open_elsewhere: bool) -> None:
    folder = filled(home / "cache", record(1), record(2))
    other = filled(home / "other", record(1), record(3))
    assert _run("export", str(home / "more.tar"), cache=other).returncode == 0
    holder = sqlite3.connect(folder / "v1" / "cache.db")
    if is_open_elsewhere:
        holder.execute("SELECT COUNT(*) FROM Cache").fetchall()
    paths = (*(folder / "v1").iterdir(), folder / "v1", folder)
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    (home / "out").mkdir(mode=0o777)
    (home / "out").chmod(0o777)
    for verb in (
        ("ls",),
        ("status",),
        ("verify",),
        ("show", record(1).key.id),
        ("lookup", "LlamaForCausalLM", "8x512"),
        ("why", "LlamaForCausalLM", "8x600"),
        ("prune", "--older-than", "30d", "--dry-run"),
        ("import", str(home / "more.tar"), "--dry-run"),
        ("export", str(home / "out" / "all.tar")),
        ("push", f"file://{home}/out"),
    ):
        if is_open_elsewhere and verb[0] not in ("ls", "import"):
            continue
        ran = _run(*verb, cache=folder, before=UNABLE)
        assert ran.returncode == 0, (verb, ran.stderr)
    assert "1 record was here already" in _run("import", str(home / "more.tar"), "--dry-run", cache=folder).stdout
    for verb in (("verify", "--repair"), ("import", str(home / "more.tar")), ("prune", "--max-size", "0")):
        ran = _run(*verb, cache=folder, before=UNABLE)
        assert _is_one_error(ran), (verb, ran.stderr)
    holder.close()
    for path in (folder, folder / "v1"):
        path.chmod(0o700)


@needs_modes
def test_an_empty_folder_that_cannot_be_written_to_is_one_line(home: Path) -> None:
    (home / "cache").mkdir(mode=0o555)
    ran = _run("ls", cache=home / "cache", before=UNABLE)
    assert _is_one_error(ran), ran.stderr


@needs_modes
def test_a_place_where_no_folder_can_be_made_is_one_line(home: Path) -> None:
    home.chmod(0o555)
    ran = _run("ls", cache=home / "new" / "cache", before=UNABLE)
    home.chmod(0o755)
    assert _is_one_error(ran), ran.stderr
    assert "Permission denied" in ran.stderr


def test_a_file_in_place_of_the_folder_is_one_line(home: Path) -> None:
    (home / "cache").write_text("")
    assert _is_one_error(_run("ls", cache=home / "cache"))


def test_a_full_disk_is_said_and_leaves_the_cache_whole(home: Path) -> None:
    folder = filled(home / "cache", *(record(n) for n in range(5)))
    other = filled(home / "other", *(record(n) for n in range(300)))
    assert _run("export", str(home / "all.tar"), cache=other).returncode == 0

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    ran = _run("import", str(home / "all.tar"), cache=folder, prepare=no_room)
    assert _is_one_error(ran), ran.stderr
    assert "cannot use the cache" in ran.stderr
    assert _run("verify", cache=folder).stdout.endswith("all sound\n")
    assert _run("export", str(home / "again.tar"), cache=other, prepare=no_room).returncode == 2
    assert not (home / "again.tar").exists()
    assert _run("import", str(home / "all.tar"), cache=folder).returncode == 0


def test_a_database_that_another_holds_is_said_in_the_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shapeguard.cache import insides, store

    monkeypatch.setattr(store, "PATIENCE_S", 0.3)
    folder = filled(home / "cache", record(1))
    monkeypatch.setattr(insides, "TIMEOUT_S", 0.1)
    with GraphCache(folder) as cache:
        cache._rows._timeout = 0.1
        cache._rows.close()
        holder = sqlite3.connect(folder / "v1" / "cache.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        assert cache.get(record(1).key.id) is not None
        with pytest.raises(CacheError) as caught:
            cache.put(record(2))
        holder.close()
        assert "another process holds it (database is locked)" in str(caught.value)
        cache.put(record(2))


def test_repair_leaves_a_database_that_another_holds_where_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shapeguard.cache import insides
    from shapeguard.cache.border import UnavailableError
    from shapeguard.cache.check import check

    folder = filled(home / "cache", record(1))
    monkeypatch.setattr(insides, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(insides.Rows.__init__, "__kwdefaults__", {"timeout": 0.1})
    holder = sqlite3.connect(folder / "v1" / "cache.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UnavailableError):
        check(folder, repair=True)
    holder.execute("ROLLBACK")
    holder.close()
    assert not list((folder / "v1").glob("broken-*"))
    assert check(folder, repair=True) == []
    with GraphCache(folder) as cache:
        assert cache.get(record(1).key.id) is not None


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_file_system_without_locks_is_said(home: Path) -> None:
    library = home / "no_locks.so"
    source = Path(__file__).with_name("no_locks.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    folder = filled(home / "cache", record(1))
    ran = _run("ls", cache=folder, LD_PRELOAD=str(library))
    assert _is_one_error(ran), ran.stderr
    assert "no locks" in ran.stderr
    assert "use a folder on a local disk: SHAPEGUARD_CACHE_DIR" in ran.stderr


def test_filling_a_cache_that_fails_costs_a_line_only(home: Path) -> None:
    (home / "cache").write_text("")
    said = fill([record(1)], home / "cache")
    assert said.startswith(f"note: the graph cache was not filled: cannot use the cache folder {home}/cache: ")
    assert known([record(1)], home / "cache") == {}
    assert fill([record(1)], home / "good") == ""
    assert known([record(1), record(2)], home / "good") == {record(1).key.graph: "known"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "Net\ud800"}, "the record holds a text that is none: 'Net\\ud800'"),
        ({"model": "N" * 9000}, "the record holds a name that is too long"),
        ({"nodes": 1 << 70}, "the record holds a count that cannot be"),
        ({"constants": (("data", "x" * (1 << 20)),)}, " bytes, more than 1048576"),
    ],
)
def test_a_graph_that_no_cache_could_give_back_is_refused_and_costs_no_other(
    home: Path, changes: dict[str, Any], said: str
) -> None:
    note = fill([record(1), record(2, **changes), record(3)], home / "cache")
    assert note.startswith("note: the graph cache keeps 2 of 3 graphs: ")
    assert said in note
    with GraphCache(home / "cache") as cache:
        assert {each.key.id for each in cache.records()} == {record(1).key.id, record(3).key.id}
    assert check(home / "cache") == []


def test_a_last_use_that_is_no_time_counts_as_long_ago(home: Path) -> None:
    folder = filled(home / "cache", record(1), record(2), record(3))
    with sqlite3.connect(folder / "v1" / "cache.db") as con:
        con.execute("UPDATE Cache SET access_time = 'x' WHERE rowid = 1")
        con.execute("UPDATE Cache SET access_time = 9e999 WHERE rowid = 2")
    with GraphCache(folder) as cache:
        assert sorted(used > 0 for _, used, _ in cache.ages()) == [False, False, True]
        assert cache.get(record(1).key.id) is not None


def test_nothing_is_unpickled_whatever_the_cache_is_used_for(home: Path) -> None:
    program = f"""
import sys
def hook(event, args):
    if event.startswith("pickle"):
        raise SystemExit(9)
sys.addaudithook(hook)
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from graph_records import filled, record
from shapeguard.cache.check import check
from shapeguard.cache.store import GraphCache
with GraphCache(filled(Path({str(home)!r}) / "c", *(record(n) for n in range(20)))) as cache:
    assert len(list(cache.records())) == 20
    assert cache.statistics().records == 20
assert check(Path({str(home)!r}) / "c", repair=True) == []
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_run_is_remembered_unless_that_is_switched_off_or_fails(home: Path) -> None:
    run = home / "run"
    run.mkdir()
    event = {"type": "compile", "n": 1, "kind": "forward", "outcome": "compiled", "key": "ab" * 32, "model": "M"}
    (run / "rank-0.pid-1.jsonl").write_text('{"type": "start"}\n' + json.dumps(event) + "\n")
    cache = home / "cache"
    assert remember(run, {"SHAPEGUARD_CACHE_DIR": str(cache), "SHAPEGUARD_NO_CACHE": "1"}) == ""
    assert not cache.exists()
    assert remember(run, {"SHAPEGUARD_CACHE_DIR": str(cache)}, job="train") == ""
    with GraphCache(cache) as store:
        assert [(each.model.name, each.jobs) for each in store.records()] == [("M", ("train",))]
    assert remember(home / "none", {"SHAPEGUARD_CACHE_DIR": str(cache)}).startswith("note: the graph cache was not")
