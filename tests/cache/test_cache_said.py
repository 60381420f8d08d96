"""What was left out, skipped or mistyped is said, not passed over in silence."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest
from graph_records import Shapeguard, filled, record
from neff_folders import NEFF, module, torch_neuron
from test_commands import RUN

from shapeguard.cache.remote import open_remote
from shapeguard.core.graphs import Neff

PLACE = f"ab/ab/{'ab' * 16}.neff"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(folder))
    neff = Neff(digest=hashlib.sha256(NEFF).hexdigest(), size_bytes=len(NEFF), path=PLACE)
    return filled(folder, record(1, neff=neff), record(2), record(3, model="Qwen3ForCausalLM"))


@pytest.fixture
def neffs(tmp_path: Path) -> Path:
    torch_neuron(tmp_path / "neffs")
    return tmp_path / "neffs"


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "remote").mkdir()
    return f"file://{tmp_path}/remote"


def test_files_that_others_are_to_read_have_the_mode_that_the_umask_gives(
    shapeguard: Shapeguard, url: str, neffs: Path, tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        assert shapeguard("cache", "push", url, "--neff-dir", str(neffs)).code == 0
        there = ["--cache-dir", "other", "--neff-dir", "there"]
        assert shapeguard("cache", "pull", url, *there).code == 0
        assert shapeguard("cache", "export", "all.tar").code == 0
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    files += [Path("there") / PLACE, Path("all.tar")]
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o640"}


def test_records_and_compiled_files_are_counted_apart(shapeguard: Shapeguard, url: str, neffs: Path) -> None:
    assert "sent 3 records and 1 NEFF" in shapeguard("cache", "push", url, "--neff-dir", str(neffs)).out
    again = shapeguard("cache", "push", url, "--neff-dir", str(neffs))
    assert "sent 0 records and 0 NEFFs, 0 B" in again.out
    assert "; 3 records and 1 NEFF were there already" in " ".join(again.out.split())
    found = json.loads(shapeguard("cache", "push", url, "--neff-dir", str(neffs), "--json").out)
    assert (found["there_already"], found["neffs_there_already"]) == (3, 1)


def test_compiled_files_that_records_name_and_the_folder_lacks_are_named(
    shapeguard: Shapeguard, url: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    ran = shapeguard("cache", "push", url, "--neff-dir", str(tmp_path / "empty"))
    assert f"1 NEFF of these records not in the folder: {PLACE}" in ran.out


@pytest.mark.parametrize("verb", ["push", "export"])
def test_a_folder_of_compiled_files_that_is_not_there_is_an_error(shapeguard: Shapeguard, url: str, verb: str) -> None:
    target = url if verb == "push" else "all.tar"
    ran = shapeguard("cache", verb, target, "--neff-dir", "nowhere")
    assert ran.code == 2
    assert ran.err.startswith("error: 'nowhere' is no folder\n")
    assert list(open_remote(url).names("")) == []
    assert not Path("all.tar").exists()


@pytest.mark.parametrize("verb", ["push", "export", "pull", "import"])
def test_a_model_that_is_not_there_is_an_error_with_the_one_that_was_meant(
    shapeguard: Shapeguard, url: str, verb: str
) -> None:
    shapeguard("cache", "push", url)
    shapeguard("cache", "export", "all.tar")
    target = {"push": url, "pull": url, "export": "other.tar", "import": "all.tar"}[verb]
    ran = shapeguard("cache", verb, target, "--model", "LlamaForCasualLM")
    assert ran.code == 2
    assert ran.err.splitlines()[0].startswith("error: there is no model 'LlamaForCasualLM' in ")
    assert ran.err.splitlines()[1] == "hint: did you mean 'LlamaForCausalLM'?"
    assert shapeguard("cache", verb, target, "--model", "Llama*").code == 0


def test_a_manifest_that_is_damaged_keeps_no_other_from_being_pushed(shapeguard: Shapeguard, url: str) -> None:
    shapeguard("cache", "push", url)
    remote = open_remote(url)
    bad, good = sorted(name for name, _ in remote.names("manifests/"))
    remote.write(bad, b"{")
    filled(Path(os.environ["SHAPEGUARD_CACHE_DIR"]), record(4), record(5, model="Qwen3ForCausalLM"))
    ran = shapeguard("cache", "push", url, "--json")
    assert ran.code == 2
    (problem,) = json.loads(ran.out)["problems"]
    assert problem["name"] == bad
    assert problem["message"].endswith("; remove it there, and push again")
    blob = remote.read(good, limit=1 << 20)
    assert blob is not None
    assert record(5).key.id in blob.data.decode()
    (Path(url.removeprefix("file://")) / bad).unlink()
    assert shapeguard("cache", "push", url).code == 0
    assert "fetched 5 records" in shapeguard("cache", "pull", url, "--cache-dir", "other").out


def test_an_archive_is_not_made_of_a_file_that_is_not_the_recorded_one(shapeguard: Shapeguard, neffs: Path) -> None:
    torch_neuron(neffs, data=NEFF[:-1] + b"x")
    ran = shapeguard("cache", "export", "all.tar", "--neff-dir", str(neffs))
    assert ran.code == 2
    assert f"{neffs / PLACE} is not the file its record says" in ran.err
    assert list(Path().glob("*.tar")) + list(Path().glob(".*.tmp")) == []


def test_a_file_that_is_too_large_for_an_archive_is_named(shapeguard: Shapeguard, cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "large" / PLACE
    path.parent.mkdir(parents=True)
    with path.open("wb") as stream:
        stream.truncate(9 << 30)
    filled(cache, record(9, neff=Neff(digest="ab" * 32, size_bytes=9 << 30, path=PLACE)))
    ran = shapeguard("cache", "export", "all.tar", "--neff-dir", "large")
    assert (ran.code, ran.err) == (
        2, f"error: large/{PLACE} has more than the 8 GB that an archive takes\nhint: push it\n"
    )  # fmt: skip
    assert not Path("all.tar").exists()


def test_an_archive_is_not_replaced_unless_that_is_said(shapeguard: Shapeguard) -> None:
    Path("all.tar").write_text("mine")
    ran = shapeguard("cache", "export", "all.tar")
    assert (ran.code, ran.err) == (2, "error: 'all.tar' exists\nhint: give --overwrite, or another file\n")
    assert Path("all.tar").read_text() == "mine"
    assert shapeguard("cache", "export", "all.tar", "--dry-run").code == 0
    assert shapeguard("cache", "export", "all.tar", "--overwrite").code == 0
    assert tarfile.is_tarfile("all.tar")


@pytest.mark.parametrize("into", ["the same cache", "another"])
@pytest.mark.parametrize("what", [b'"nodes":1200', b"NEFF"])
def test_every_digest_of_an_archive_is_checked_whatever_is_here_already(
    shapeguard: Shapeguard, neffs: Path, what: bytes, into: str
) -> None:
    shapeguard("cache", "export", "good.tar", "--neff-dir", str(neffs))
    changed = what[:-1] + b"X"
    Path("bad.tar").write_bytes(Path("good.tar").read_bytes().replace(what, changed))
    folder = [] if into == "the same cache" else ["--cache-dir", "other"]
    for dry_run in ([], ["--dry-run"]):
        ran = shapeguard("cache", "import", "bad.tar", *folder, *dry_run)
        assert ran.code == 2, ran.out
        assert "in bad.tar has another digest than its name says\nhint: export it again" in ran.err


def test_the_newest_compiler_is_one_that_compiled_something(shapeguard: Shapeguard, tmp_path: Path) -> None:
    root = tmp_path / "xla"
    usable = module(root, "MODULE_1+a", "2.20.1")
    old = module(root, "MODULE_2+a", "2.19.1")
    failed = module(root, "MODULE_3+a", "2.21.1", how="failed")
    cut_off = module(root, "MODULE_4+a", "2.22.1", how="cut-off")
    ran = shapeguard("cache", "clean", "--neff-dir", str(root), "--old-versions")
    assert ran.code == 0
    assert (usable.exists(), old.exists(), failed.exists(), cut_off.exists()) == (True, False, True, True)


def test_what_could_not_be_removed_stands_in_the_document_too(
    shapeguard: Shapeguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "xla"
    failed = module(root, how="failed")
    monkeypatch.setattr("shutil.rmtree", lambda path: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    ran = shapeguard("cache", "clean", "--neff-dir", str(root), "--failed", "--json")
    assert ran.code == 2
    assert json.loads(ran.out)["failed"] == [{"path": str(failed), "message": "Permission denied"}]


def test_why_takes_a_pattern(shapeguard: Shapeguard) -> None:
    assert shapeguard("cache", "why", "Llama*", "8x512").out.startswith("Llama*, 8×512: known")
    found = json.loads(shapeguard("cache", "why", "Llama*@0123", "8x600", "--json").out)["graphs"][0]
    assert [each["part"] for each in found["differences"]] == ["shape of input_ids"]


def test_why_of_a_run_keeps_to_the_options(shapeguard: Shapeguard, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "rank-0.pid-1.jsonl").write_text("".join(json.dumps(event) + "\n" for event in RUN))
    assert shapeguard("cache", "why", "--event", str(run)).out.startswith("forward of Llama")
    assert shapeguard("cache", "why", "--event", str(run), "--kind", "eager").out.startswith("add.Tensor")
    ran = shapeguard("cache", "why", "--event", str(run), "--kind", "backward")
    assert ran.code == 2
    assert f"error: {run} has no graph with kind backward\n" in ran.err
    assert shapeguard("cache", "why", "--event", f"{run}:2", "--length", "10").code == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("ls", "--kind", "foward"), "'foward' is not one of forward, backward, inference, eager, collective. "
         "Did you mean 'forward'?"),
        (("lookup", "M", "--target", "tnr2"), "Did you mean 'trn2'?"),
        (("ls", "--dtype", "int46"), "'int46' is no dtype\nhint: did you mean 'int64'?"),
        (("lookup", "M", "8x512:flaot32"), "'flaot32' is no dtype\nhint: did you mean 'float32'?"),
        (("ls", "--dtype", "what"), "'what' is no dtype\nhint: write it as torch does: int64, bfloat16"),
    ],
)  # fmt: skip
def test_a_word_that_was_mistyped_is_an_error(shapeguard: Shapeguard, args: tuple[str, ...], said: str) -> None:
    ran = shapeguard("cache", *args)
    assert ran.code == 2
    assert said in ran.err


def test_the_kind_says_that_operators_are_meant(shapeguard: Shapeguard, cache: Path) -> None:
    filled(cache, record(9, kind="eager", name="add.Tensor"))
    assert len(json.loads(shapeguard("cache", "ls", "--kind", "eager", "--json").out)["records"]) == 1
    assert shapeguard("cache", "lookup", "LlamaForCausalLM", "--kind", "eager").code == 0


@pytest.mark.parametrize(("scheme", "begin"), [("s3", "AWS_"), ("gs", "GOOGLE_"), ("az", "AZURE_")])
def test_the_hint_on_credentials_is_that_of_the_store(scheme: str, begin: str) -> None:
    pytest.importorskip("obstore")
    from shapeguard.cache.remotes import az, gs, s3

    remote = {"s3": s3.S3Remote, "gs": gs.GsRemote, "az": az.AzRemote}[scheme]
    assert remote.credentials.startswith(begin)


def test_a_store_without_an_account_is_one_line(shapeguard: Shapeguard, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    for name in list(os.environ):
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)
    ran = shapeguard("cache", "push", "az://container/x")
    assert ran.code == 2
    assert "Account must be specified" in ran.err
    assert "hint: set them in the environment: AZURE_STORAGE_ACCOUNT_NAME" in ran.err


@pytest.mark.parametrize("form", ["concise", "github", "json-lines", "markdown", "sarif", "json", "full"])
def test_every_format_has_what_a_table_says(shapeguard: Shapeguard, cache: Path, form: str) -> None:
    for verb in (
        ("ls",),
        ("status",),
        ("show", record(1).key.id),
        ("lookup", "Qwen3ForCausalLM", "8x512"),
        ("why", "Qwen3ForCausalLM", "8x600"),
        ("verify",),
        ("dir",),
        ("prune", "--older-than", "30d", "--dry-run"),
    ):
        ran = shapeguard("cache", *verb, "--output-format", form)
        assert ran.code == 0, (verb, ran.err)
        assert ran.out.strip(), verb


def test_lines_for_programs_are_a_record_each(shapeguard: Shapeguard) -> None:
    rows = [json.loads(line) for line in shapeguard("cache", "ls", "--output-format", "json-lines").out.splitlines()]
    assert {row["id"] for row in rows} == {record(n, model=m).key.id for n, m in ((1, "L"), (2, "L"), (3, "Q"))}
    (row,) = shapeguard("cache", "status", "--output-format", "json-lines").out.splitlines()
    assert json.loads(row)["graphs"] == 3
    lines = shapeguard("cache", "ls", "--output-format", "concise").out.splitlines()
    assert [len(line.split("\t")) for line in lines] == [10, 10, 10]


def test_no_name_of_a_model_is_a_command_to_github(shapeguard: Shapeguard, cache: Path) -> None:
    filled(cache, record(8, model="::error::x"))
    out = shapeguard("cache", "ls", "--output-format", "github").out
    assert "::" not in out
    assert ": :error: :x" in out
