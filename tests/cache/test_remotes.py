"""What every remote promises, over a folder and over S3 on loopback."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from endpoint import BUCKET, Proxy, s3
from graph_records import VERSIONS, Shapeguard, filled, record
from neff_folders import NEFF, torch_neuron

from shapeguard.cache import transfer
from shapeguard.cache.check import check
from shapeguard.cache.manifest import Manifest, decode, object_name
from shapeguard.cache.pull import plan_pull, pull
from shapeguard.cache.remote import ABSENT, Remote, open_remote, schemes
from shapeguard.cache.store import GraphCache
from shapeguard.core.errors import RemoteError
from shapeguard.core.graphs import Neff

DATA = b"some bytes"
NAME = object_name(hashlib.sha256(DATA).hexdigest())
MANIFEST = "manifests/Llama-0123456789ab/0123456789ab-all.json"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with s3() as port:
        yield port


@pytest.fixture
def proxy(port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    proxy = Proxy(port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(transfer, "_FIRST_PAUSE_S", 0.01)
    yield proxy
    proxy.close()


@pytest.fixture(params=["file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        (tmp_path / "remote").mkdir()
        return f"file://{tmp_path}/remote"
    request.getfixturevalue("proxy")
    return f"s3://{BUCKET}/{tmp_path.name}"


@pytest.fixture
def remote(url: str) -> Remote:
    return open_remote(url)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_schemes_are_those_of_the_conventions() -> None:
    assert schemes() == ["az", "file", "gs", "s3"]


def test_what_was_written_is_read(remote: Remote) -> None:
    assert remote.read(NAME, limit=100) is None
    assert remote.write(NAME, DATA)
    blob = remote.read(NAME, limit=100)
    assert blob is not None
    assert blob.data == DATA
    into = BytesIO()
    assert remote.fetch(NAME, into, limit=100)
    assert into.getvalue() == DATA
    assert not remote.fetch(MANIFEST, BytesIO(), limit=100)
    assert list(remote.names("objects/")) == [(NAME, len(DATA))]
    assert list(remote.names("manifests/")) == []


def test_a_file_can_be_written_too(remote: Remote, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(DATA * 1000)
    assert remote.write(NAME, path, expect=ABSENT)
    assert list(remote.names("objects/")) == [(NAME, 10_000)]


def test_nothing_is_overwritten_that_was_to_be_absent(remote: Remote) -> None:
    assert remote.write(NAME, DATA, expect=ABSENT)
    assert not remote.write(NAME, b"other", expect=ABSENT)
    blob = remote.read(NAME, limit=100)
    assert blob is not None
    assert blob.data == DATA


def test_a_version_that_has_changed_is_not_overwritten(remote: Remote) -> None:
    remote.write(MANIFEST, b"one")
    first = remote.read(MANIFEST, limit=100)
    assert first is not None
    assert remote.write(MANIFEST, b"two", expect=first.version)
    assert not remote.write(MANIFEST, b"three", expect=first.version)
    now = remote.read(MANIFEST, limit=100)
    assert now is not None
    assert now.data == b"two"


def test_more_bytes_than_there_may_be_are_refused(remote: Remote) -> None:
    remote.write(NAME, DATA)
    with pytest.raises(RemoteError, match=r"has more than the 5 bytes it may have"):
        remote.read(NAME, limit=5)
    with pytest.raises(RemoteError, match=r"has more than the 5 bytes it may have"):
        remote.fetch(NAME, BytesIO(), limit=5)


@pytest.mark.parametrize(
    "name", ["../x", "objects/../../x", "objects/ab", "/etc/passwd", "manifests/a/../b.json", NAME + "\n"]
)
def test_names_that_shapeguard_does_not_give_are_refused(remote: Remote, name: str) -> None:
    with pytest.raises(RemoteError, match=r"is no name in a remote"):
        remote.read(name, limit=10)
    with pytest.raises(RemoteError, match=r"is no name in a remote"):
        remote.write(name, b"")


def test_of_two_writers_at_once_one_is_told(remote: Remote) -> None:
    wrote: list[bool] = []
    barrier = threading.Barrier(4)

    def write(data: bytes) -> None:
        barrier.wait(timeout=60)
        wrote.append(remote.write(NAME, data, expect=ABSENT))

    threads = [threading.Thread(target=write, args=(bytes([n]) * 100,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(wrote) == [False, False, False, True]


def _three(cache: Path) -> Path:
    return filled(cache, *(record(n) for n in range(3)), record(9, kind="eager", name="add.Tensor"))


def test_what_was_pushed_can_be_pulled_elsewhere(shapeguard: Shapeguard, url: str, cache: Path) -> None:
    _three(cache)
    assert shapeguard("cache", "push", url).code == 0
    ran = shapeguard("cache", "pull", url, "--cache-dir", "other", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["new"] == 4
    ours = json.loads(shapeguard("cache", "ls", "--json").out)["records"]
    theirs = json.loads(shapeguard("cache", "ls", "--json", "--cache-dir", "other").out)["records"]
    assert [each["id"] for each in ours] == [each["id"] for each in theirs]
    again = json.loads(shapeguard("cache", "pull", url, "--cache-dir", "other", "--json").out)
    assert (again["records"], again["here_already"]) == (0, 4)


def test_pushing_again_sends_nothing(shapeguard: Shapeguard, url: str, cache: Path) -> None:
    _three(cache)
    shapeguard("cache", "push", url)
    again = json.loads(shapeguard("cache", "push", url, "--json").out)
    assert (again["records"], again["bytes"], again["there_already"]) == (0, 0, 4)


def test_a_dry_run_moves_nothing(shapeguard: Shapeguard, url: str, cache: Path) -> None:
    _three(cache)
    assert "would send 4 records" in shapeguard("cache", "push", url, "--dry-run").out
    assert list(open_remote(url).names("")) == []
    shapeguard("cache", "push", url)
    assert "would fetch 4 records" in shapeguard("cache", "pull", url, "--dry-run", "--cache-dir", "other").out
    assert json.loads(shapeguard("cache", "ls", "--json", "--cache-dir", "other").out)["records"] == []


def test_only_what_a_lock_names_is_moved(shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path) -> None:
    _three(cache)
    lock = tmp_path / "shapeguard.lock"
    lock.write_text(f'schema = 1\n[[graph]]\nkey = "{1:064x}"\n[eager]\nkeys = ["add.Tensor {9:064x}"]\n')
    assert json.loads(shapeguard("cache", "push", url, "--lock", str(lock), "--json").out)["records"] == 2
    assert json.loads(shapeguard("cache", "push", url, "--json").out)["records"] == 2
    ran = shapeguard("cache", "pull", url, "--lock", str(lock), "--cache-dir", "other", "--json")
    assert (ran.code, json.loads(ran.out)["records"]) == (0, 2)


def test_graphs_of_the_lock_that_the_remote_lacks_are_named(
    shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path
) -> None:
    _three(cache)
    shapeguard("cache", "push", url)
    lock = tmp_path / "shapeguard.lock"
    lock.write_text(f'keys = ["{1:064x}", "{"ab" * 32}"]\n')
    ran = shapeguard("cache", "pull", url, "--lock", str(lock), "--cache-dir", "other")
    assert ran.code == 1
    assert "1 graph of the lock is not there: abababababab" in ran.out


def test_there_is_one_manifest_for_each_model_and_toolchain(shapeguard: Shapeguard, url: str, cache: Path) -> None:
    other = {**VERSIONS, "torch": "2.14.0"}
    filled(cache, record(1), record(2, model="Qwen3"), record(3, versions=other))
    found = json.loads(shapeguard("cache", "push", url, "--json").out)["manifests"]
    assert len(found) == 3
    assert sorted(name for name, _ in open_remote(url).names("manifests/")) == found


def test_two_who_push_at_once_lose_nothing(shapeguard: Shapeguard, url: str, tmp_path: Path) -> None:
    from shapeguard.cache.push import plan_push, push

    plans = [plan_push([record(n)], open_remote(url)) for n in range(4)]
    barrier = threading.Barrier(4)

    def send(number: int) -> None:
        barrier.wait(timeout=60)
        push(plans[number], open_remote(url))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert json.loads(shapeguard("cache", "pull", url, "--json").out)["new"] == 4


def _with_neff(cache: Path, root: Path) -> None:
    torch_neuron(root)
    neff = Neff(digest=hashlib.sha256(NEFF).hexdigest(), size_bytes=len(NEFF), path=f"ab/ab/{'ab' * 16}.neff")
    filled(cache, record(1, neff=neff), record(2))


def test_compiled_files_come_to_where_the_neuron_stack_reads_them(
    shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path
) -> None:
    _with_neff(cache, tmp_path / "neffs")
    ran = shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs"), "--json")
    assert json.loads(ran.out)["neffs"] == 1
    ran = shapeguard("cache", "pull", url, "--neff-dir", str(tmp_path / "there"), "--cache-dir", "other", "--json")
    assert (ran.code, json.loads(ran.out)["neffs"]) == (0, 1)
    assert (tmp_path / "there" / "ab" / "ab" / f"{'ab' * 16}.neff").read_bytes() == NEFF
    assert list(Path("other/incoming").iterdir()) == []
    again = shapeguard("cache", "pull", url, "--neff-dir", str(tmp_path / "there"), "--cache-dir", "other", "--json")
    assert json.loads(again.out)["records"] == 0


def test_two_graphs_with_one_compiled_file_both_get_it(
    shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path
) -> None:
    neffs = []
    for key in ("ab" * 16, "cd" * 16):
        torch_neuron(tmp_path / "neffs", key)
        digest = hashlib.sha256(NEFF).hexdigest()
        neffs.append(Neff(digest=digest, size_bytes=len(NEFF), path=f"{key[:2]}/{key[2:4]}/{key}.neff"))
    filled(cache, record(1, neff=neffs[0]), record(2, neff=neffs[1]))
    assert shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs")).code == 0
    ran = shapeguard("cache", "pull", url, "--neff-dir", str(tmp_path / "there"), "--cache-dir", "other")
    assert ran.code == 0, ran.err
    assert [(tmp_path / "there" / each.path).read_bytes() for each in neffs] == [NEFF, NEFF]
    assert sorted(path.suffix for path in (tmp_path / "there").rglob("*") if path.is_file()) == [".neff", ".neff"]


def test_several_who_pull_into_one_place_at_once_all_succeed(
    shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path
) -> None:
    _with_neff(cache, tmp_path / "neffs")
    shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs"))
    there, other = tmp_path / "there", tmp_path / "other"
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)
    with GraphCache(other):
        pass  # made once, so that the four race for the pull and not for the database

    def fetch() -> None:
        try:
            remote = open_remote(url)
            with GraphCache(other) as store:
                # With a limit: one that failed before must not keep the others waiting.
                barrier.wait(timeout=60)
                pull(plan_pull(remote, store, neff_dir=there), remote, store, neff_dir=there)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert [path.read_bytes() for path in there.rglob("*") if path.is_file()] == [NEFF]
    assert check(other) == []


def test_a_compiled_file_that_is_missing_or_damaged_here_is_fetched_again(
    shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path
) -> None:
    _with_neff(cache, tmp_path / "neffs")
    shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs"))
    path = tmp_path / "neffs" / "ab" / "ab" / f"{'ab' * 16}.neff"
    for damage in (path.unlink, lambda: path.write_bytes(NEFF[:-1] + b"x")):
        damage()
        assert shapeguard("cache", "pull", url, "--neff-dir", str(tmp_path / "neffs")).code == 0
        assert path.read_bytes() == NEFF


def test_a_compiled_file_that_is_not_the_recorded_one_is_not_sent(
    shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path
) -> None:
    _with_neff(cache, tmp_path / "neffs")
    torch_neuron(tmp_path / "neffs", data=NEFF[:-1] + b"x")
    ran = shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs"))
    assert ran.code == 2
    assert "is not the file its record says" in ran.err
    assert list(open_remote(url).names("manifests/")) == []


def _objects(url: str) -> list[str]:
    return [name for name, _ in open_remote(url).names("objects/")]


def _only_manifest(url: str) -> tuple[str, Manifest]:
    remote = open_remote(url)
    ((name, _),) = remote.names("manifests/")
    blob = remote.read(name, limit=1 << 20)
    assert blob is not None
    return name, decode(blob.data, name)


def _spoil_digest(url: str) -> None:
    for name in _objects(url):
        blob = open_remote(url).read(name, limit=1 << 20)
        assert blob is not None
        open_remote(url).write(name, blob.data[:-2] + b"!}")


def _truncate(url: str) -> None:
    for name in _objects(url):
        open_remote(url).write(name, b"sgr\x01")


def _enlarge(url: str) -> None:
    for name in _objects(url):
        open_remote(url).write(name, b"x" * 5_000_000)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_spoil_digest, "has another digest than its name says"),
        (_truncate, "has another digest than its name says"),
        (_enlarge, "bytes it may have"),
    ],
)
def test_a_spoilt_object_is_named_and_nothing_of_the_pull_is_to_be_seen(
    shapeguard: Shapeguard, url: str, cache: Path, spoil: Callable[[str], None], said: str
) -> None:
    _three(cache)
    shapeguard("cache", "push", url)
    spoil(url)
    ran = shapeguard("cache", "pull", url, "--cache-dir", "other")
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert json.loads(shapeguard("cache", "status", "--json", "--cache-dir", "other").out)["graphs"] == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\x80\x04\x95", "cannot be read"),
        (b"{", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"schema": 9}', "has schema 9"),
        (b'{"schema": 1, "model": "other"}', "holds the manifest of"),
        (b'{"schema": 1, "entries": [{"id": "../../x", "graph": "a", "object": "b", "size_bytes": 1}]}', "wrong id"),
        (b'{"schema": 1, "entries": [{"id": 5}]}', "cannot be read"),
        (
            json.dumps(
                {
                    "schema": 1,
                    "entries": [
                        {
                            "id": "0" * 40,
                            "graph": "0" * 64,
                            "object": "0" * 64,
                            "size_bytes": 5,
                            "neff": {"digest": "0" * 64, "size_bytes": 5, "path": "../../../evil.neff"},
                        }
                    ],
                }
            ).encode(),
            "puts a NEFF where none belongs",
        ),
        (
            json.dumps(
                {"entries": [{"id": "0" * 40, "graph": "0", "object": "0" * 64, "size_bytes": 10**17}]}
            ).encode(),
            "wrong id, digest or size",
        ),
    ],
)
def test_a_manifest_that_cannot_be_is_named_and_the_others_are_used(
    shapeguard: Shapeguard, url: str, cache: Path, body: bytes, said: str
) -> None:
    _three(cache)
    shapeguard("cache", "push", url)
    open_remote(url).write(MANIFEST, body)
    ran = shapeguard("cache", "pull", url, "--cache-dir", "other", "--json")
    assert ran.code == 2
    found = json.loads(ran.out)
    assert found["new"] == 4
    assert [each["name"] for each in found["problems"]] == [MANIFEST]
    assert said in found["problems"][0]["message"]


def test_an_object_that_is_gone_is_named(shapeguard: Shapeguard, url: str, cache: Path, tmp_path: Path) -> None:
    _three(cache)
    shapeguard("cache", "push", url)
    name, found = _only_manifest(url)
    gone = replace(found, entries=(replace(found.entries[0], object="ff" * 32), *found.entries[1:]))
    from shapeguard.cache.manifest import encode

    open_remote(url).write(name, encode(gone))
    ran = shapeguard("cache", "pull", url, "--cache-dir", "other")
    assert ran.code == 2
    assert f"objects/ff/{'ff' * 32} is not in {url}, though its manifest names it" in ran.err


def test_an_object_that_broke_off_at_the_remote_is_sent_again(shapeguard: Shapeguard, url: str, cache: Path) -> None:
    _three(cache)
    shapeguard("cache", "push", url)
    _truncate(url)
    assert json.loads(shapeguard("cache", "push", url, "--json").out)["records"] == 4
    assert shapeguard("cache", "pull", url, "--cache-dir", "other").code == 0


def test_a_remote_that_is_read_only_here_is_not_written_to(
    shapeguard: Shapeguard, url: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _three(cache)
    monkeypatch.setenv("SHAPEGUARD_REMOTE_READ_ONLY", "1")
    ran = shapeguard("cache", "push", url)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {url} is read-only here\n")
    assert list(open_remote(url).names("")) == []


@pytest.mark.parametrize("kind", ["drop", "503", "slow", "half", "lost"])
def test_a_network_that_fails_now_and_then_costs_only_time(
    shapeguard: Shapeguard, proxy: Proxy, cache: Path, tmp_path: Path, kind: str
) -> None:
    url = f"s3://{BUCKET}/{tmp_path.name}"
    _with_neff(cache, tmp_path / "neffs")
    filled(cache, *(record(n) for n in range(10, 20)))
    proxy.fault = lambda number, method, path: kind if number % 3 == 0 else ""
    assert shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs")).code == 0
    ran = shapeguard("cache", "pull", url, "--cache-dir", "other", "--neff-dir", str(tmp_path / "there"), "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["new"] == 12
    assert proxy.faults.count(kind) >= 8
    proxy.fault = lambda number, method, path: ""
    _, found = _only_manifest(url)
    assert len(found.entries) == 12


def test_a_server_that_stays_away_is_one_line(shapeguard: Shapeguard, proxy: Proxy, cache: Path) -> None:
    _three(cache)
    proxy.fault = lambda number, method, path: "503"
    ran = shapeguard("cache", "push", f"s3://{BUCKET}/x")
    assert ran.code == 2
    assert ran.err.startswith(f"error: s3://{BUCKET}/x: ")
    assert len(ran.err.splitlines()) == 1
    assert proxy.num_requests == transfer.TRIES


def test_a_bucket_that_is_not_there_is_said(shapeguard: Shapeguard, proxy: Proxy, cache: Path) -> None:
    ran = shapeguard("cache", "pull", "s3://nothing-here/x")
    assert ran.code == 2
    assert ran.err.startswith("error: there is no such bucket: ")


@pytest.mark.parametrize("endpoint", ["nonsense", "http://", "http://h:x", "ftp://h", "http://h:99999"])
def test_an_endpoint_that_is_no_address_is_said(
    shapeguard: Shapeguard, cache: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    ran = shapeguard("cache", "pull", "s3://bucket/x")
    assert ran.code == 2
    assert ran.err == (
        f"error: AWS_ENDPOINT_URL={endpoint!r} is no address\nhint: write http://host:port or https://host\n"
    )


def test_links_in_a_folder_lead_nowhere(shapeguard: Shapeguard, cache: Path, tmp_path: Path) -> None:
    _three(cache)
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote" / "objects").symlink_to(outside, target_is_directory=True)
    ran = shapeguard("cache", "push", f"file://{tmp_path}/remote")
    assert ran.code == 2
    assert f"{tmp_path}/remote/objects is a link or a file" in ran.err
    assert list(outside.iterdir()) == []


def test_a_folder_of_neffs_with_a_link_in_it_is_not_written_through(
    shapeguard: Shapeguard, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "remote").mkdir()
    url = f"file://{tmp_path}/remote"
    _with_neff(cache, tmp_path / "neffs")
    shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "neffs"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "ab").symlink_to(outside, target_is_directory=True)
    ran = shapeguard("cache", "pull", url, "--neff-dir", str(tmp_path / "there"), "--cache-dir", "other")
    assert ran.code == 2
    assert f"{tmp_path}/there/ab is a link or a file" in ran.err
    assert list(outside.iterdir()) == []
    assert json.loads(shapeguard("cache", "status", "--json", "--cache-dir", "other").out)["graphs"] == 0
