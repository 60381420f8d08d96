"""From a lock to a deploy, end to end with real jobs on the simulated device; and Ray, statements, production."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from warmup_light import Light, environment, journal, parents, project, warmup

from tests.conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "cache"))

from endpoint import BUCKET, s3

URL = f"s3://{BUCKET}/graphs"
STATEMENT = ".shapeguard/warmup/statement.json"
SAMPLE = REPOSITORY / "fixtures" / "sample_project"


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """An S3 endpoint on loopback, as the variables that lead to it."""
    with s3() as port:
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory, store: dict[str, str]) -> Path:
    """The sample project, locked, warmed up on one machine, and pushed."""
    folder = tmp_path_factory.mktemp("one") / "project"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns(".shapeguard*", "__pycache__", "*.lock"))
    locked = subprocess.run(
        [sys.executable, "-m", "shapeguard", "lock"], cwd=folder, env=environment(folder), capture_output=True
    )
    assert locked.returncode == 0, locked.stderr
    ran = warmup(folder, "--remote", URL, "--push", "-j", "2", **store)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def another_machine(pushed: Path, target: Path) -> Path:
    return Path(shutil.copytree(pushed, target, ignore=shutil.ignore_patterns(".shapeguard", ".cache", "__pycache__")))


def test_what_one_machine_compiled_another_proves(pushed: Path, tmp_path: Path, store: dict[str, str]) -> None:
    there = another_machine(pushed, tmp_path / "two")
    asked = json.loads(warmup(there, "--remote", URL, "--dry-run", "--json", **store).stdout)
    assert len(asked["missing"]) == len(asked["fetched"]) == 37
    assert asked["recipes"] == []
    ran = warmup(there, "--remote", URL, "--no-compile", "--verify", "--json", **store)
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["misses"], told["num_fetched"]) == (0, [], 37)
    said = json.loads((there / STATEMENT).read_text())
    assert (said["device"], said["misses"], said["num_graphs"], said["num_eager"]) == ("simulated", 0, 3, 34)


def test_the_guide_shows_what_the_command_prints(pushed: Path, tmp_path: Path) -> None:
    guide = (REPOSITORY / "docs" / "warmup.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^\$ shapeguard warmup --dry-run -j 2\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert warmup(another_machine(pushed, tmp_path / "two"), "--dry-run", "-j", "2").stdout == said


def test_the_guides_lines_for_production_run() -> None:
    guide = (REPOSITORY / "docs" / "warmup.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert subprocess.run([sys.executable, "-c", block]).returncode == 0


def _objects(store: dict[str, str], folder: str) -> list[tuple[str, bytes]]:
    import boto3

    bucket = boto3.resource(
        "s3", endpoint_url=store["AWS_ENDPOINT_URL"], aws_access_key_id="key", aws_secret_access_key="secret",
        region_name="us-east-1",
    ).Bucket(BUCKET)  # fmt: skip
    found = []
    for each in bucket.objects.filter(Prefix=f"{folder}/"):
        data = each.get()["Body"].read()
        if data.startswith(b"shapeguard: simulated"):
            found.append((each.key, data))
    return sorted(found)


def _put(store: dict[str, str], name: str, data: bytes | None) -> None:
    import boto3

    client = boto3.client(
        "s3", endpoint_url=store["AWS_ENDPOINT_URL"], aws_access_key_id="key", aws_secret_access_key="secret",
        region_name="us-east-1",
    )  # fmt: skip
    if data is None:
        client.delete_object(Bucket=BUCKET, Key=name)
    else:
        client.put_object(Bucket=BUCKET, Key=name, Body=data)


@pytest.mark.parametrize("how", ["deleted", "flipped"])
def test_an_object_that_is_gone_or_damaged_is_named_and_nothing_is_proven(
    tmp_path: Path, store: dict[str, str], how: str
) -> None:
    url = f"s3://{BUCKET}/{how}"
    here = project(tmp_path / "one", {f"j{n}": Light(graphs={f"g{n}": 10 + n}) for n in range(3)})
    assert warmup(here, "--remote", url, "--push", **store).returncode == 0
    name, data = _objects(store, how)[0]
    _put(store, name, None if how == "deleted" else data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    there = another_machine(here, tmp_path / "two")
    ran = warmup(there, "--remote", url, "--no-compile", "--verify", "--json", **store)
    told = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert told["num_fetched"] == 2
    (miss,) = told["misses"]
    assert (
        miss["why"] in ("no such graph is known here", "known, but not compiled here")
        or "never compiled" in miss["why"]
    )
    (problem,) = told["problems"]
    digest = name.rpartition("/")[2]
    assert digest in problem["message"]
    assert ("is not in" if how == "deleted" else "another digest") in problem["message"]
    assert not (there / STATEMENT).exists()


@pytest.mark.parametrize("how", ["deleted", "flipped", "compiler"])
def test_a_file_here_that_is_gone_or_damaged_or_of_another_compiler_is_named(tmp_path: Path, how: str) -> None:
    folder = project(tmp_path / "p", {"a": Light(graphs={"g1": 10}), "b": Light(graphs={"g2": 20})})
    more = {"SHAPEGUARD_SIM_COMPILER": "2.21.1"}
    assert warmup(folder, "--verify", **more).returncode == 0
    file = sorted((folder / ".shapeguard" / "neffs").rglob("*.neff"))[0]
    place = file.relative_to(folder / ".shapeguard" / "neffs").as_posix()
    data = file.read_bytes()
    if how == "deleted":
        file.unlink()
    elif how == "flipped":
        file.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    else:
        more["SHAPEGUARD_SIM_COMPILER"] = "2.22.0"
    ran = warmup(folder, "--verify", "--no-compile", "--json", **more)
    whys = [miss["why"] for miss in json.loads(ran.stdout)["misses"]]
    assert ran.returncode == 1
    assert (
        whys
        == {
            "deleted": [f"its file {place} is gone"],
            "flipped": [f"its file {place} is damaged: another digest than recorded"],
            "compiler": ["neuronx-cc 2.21.1 compiled it, here is 2.22.0"] * 2,
        }[how]
    )
    assert not (folder / STATEMENT).exists()
    # Compiled anew, it is as it was.
    assert warmup(folder, "--verify", **more).returncode == 0


def test_a_statement_holds_for_its_own_lock_toolchain_and_device_only(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", {"a": Light(graphs={"g1": 10})})
    more = {"SHAPEGUARD_SIM_COMPILER": "2.21.1"}
    assert warmup(folder, "--verify", **more).returncode == 0

    def refused(*words: str, **variables: str) -> list[str]:
        ran = warmup(folder, "--check", STATEMENT, "--json", *words, **variables)
        assert ran.returncode == int(bool(json.loads(ran.stdout)["refused"]))
        return json.loads(ran.stdout)["refused"]

    assert refused("--device", "sim", **more) == []
    assert refused("--device", "sim", SHAPEGUARD_SIM_COMPILER="2.22.0") == ["neuronx-cc was 2.21.1, here is 2.22.0"]
    (first, *_) = refused(**more)
    assert first.startswith("it is of the simulated device: nothing of it was compiled for Trainium")
    neffs = folder / ".shapeguard" / "neffs"
    assert refused("--device", "sim", "--neff-dir", str(neffs), **more) == []
    file = next(neffs.rglob("*.neff"))
    file.unlink()
    assert refused("--device", "sim", "--neff-dir", str(neffs), **more) == [
        f"{file.relative_to(neffs).as_posix()} is not in {neffs}"
    ]
    project(folder, {"a": Light(graphs={"g1": 10}), "b": Light(graphs={"g2": 10})})
    (why,) = refused("--device", "sim", **more)
    assert why.startswith("it is of another lock (")


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\x80\x04", b'{"schema": 99, "device": "real"}', b"null"])
def test_what_is_no_statement_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    folder = project(tmp_path / "p", {"a": Light(graphs={"g1": 10})})
    (folder / "said.json").write_bytes(data)
    ran = warmup(folder, "--check", "said.json")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: said.json is no statement: ")


@pytest.mark.soak
def test_the_same_warm_up_runs_on_a_ray_cluster_and_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    jobs = {f"j{n}": Light(graphs={f"g{n}": 10}, words=("rest=1",)) for n in range(6)}
    folder = project(tmp_path / "p", jobs)
    process = subprocess.Popen(
        [sys.executable, "-m", "shapeguard", "warmup", "--executor", "ray", "-j", "2", "--json"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "errors").open("w"),
        text=True,
    )
    while process.poll() is None and sum(row["type"] == "finished" for row in journal(folder)) < 2:
        time.sleep(0.05)
    killed = False
    while process.poll() is None and not killed:
        killed = _kill_a_ray_worker(process.pid)
    out, _ = process.communicate()
    assert process.returncode == 0, (tmp_path / "errors").read_text()
    assert killed
    assert json.loads(out)["finished"] == sorted(jobs)
    finished = [row["recipe"] for row in journal(folder) if row["type"] == "finished"]
    assert sorted(finished) == sorted(jobs)
    assert json.loads(warmup(folder, "--dry-run", "--json").stdout)["missing"] == []


def _kill_a_ray_worker(driver: int) -> bool:
    """Kill a worker of the cluster that a process started, and of no other."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::attempt" in path.read_bytes() and driver in parents(int(path.parent.name)):
                os.kill(int(path.parent.name), signal.SIGKILL)
                return True
        except OSError:
            continue
    return False


SERVICE = """
import logging
logging.basicConfig(format="%(levelname)s %(message)s")
import torch
import shapeguard

@torch.compile(backend="eager")
def answer(rows):
    return rows * 2

answer(torch.ones(4, 8))
ACTION
answer(torch.ones(4, 8))
try:
    answer(torch.ones(4, 9))
    print("answered")
except shapeguard.CompileForbiddenError as error:
    print("refused", error)
"""


@pytest.mark.parametrize(
    ("action", "out", "err"),
    [
        ("shapeguard.forbid_compiles()", r"refused .* answer \(service.py:7\): rows dim 1: 8 → 9\n+", ""),
        ("shapeguard.forbid_compiles('warn')", "answered\n", r"WARNING compiled while .*: rows dim 1: 8 → 9\n+"),
        ("with shapeguard.forbid_compiles(): pass", "answered\n", ""),
    ],
)
def test_a_serving_process_refuses_or_logs_a_compile_with_its_cause(
    tmp_path: Path, action: str, out: str, err: str
) -> None:
    (tmp_path / "service.py").write_text(SERVICE.replace("ACTION", action))
    ran = subprocess.run([sys.executable, "service.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(out, ran.stdout), ran.stdout
    assert re.fullmatch(err, ran.stderr), ran.stderr


@pytest.mark.parametrize(
    ("value", "code"),
    [("1", 1), pytest.param("warn", 0, marks=pytest.mark.soak), pytest.param("0", 0, marks=pytest.mark.soak)],
)
def test_the_variable_holds_in_a_traced_program(pushed: Path, tmp_path: Path, value: str, code: int) -> None:
    there = another_machine(pushed, tmp_path / "two")
    env = environment(there, SHAPEGUARD_FORBID_COMPILES=value)
    command = [sys.executable, "-m", "shapeguard", "trace", "-q", "--inner", "meta", "decode.py"]
    ran = subprocess.run(command, cwd=there, env=env, capture_output=True, text=True)
    said = "inference Net ids 1×16 int64: never needed before at decode.py:15"
    assert ran.returncode == code
    assert (said in ran.stderr) == (value != "0")


def test_importing_shapeguard_with_the_variable_set_does_not_import_torch() -> None:
    code = "import sys, shapeguard; sys.exit('torch' in sys.modules)"
    env = {**os.environ, "SHAPEGUARD_FORBID_COMPILES": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=env).returncode == 0
