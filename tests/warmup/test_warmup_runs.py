"""Warm-ups of small jobs through the command: recipes, retries, memory, cores, journal, kills, proof, statement."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from warmup_light import Light, environment, journal, project, warmup

STATEMENT = ".shapeguard/warmup/statement.json"


def graphs(number: int, nodes: int = 10) -> dict[str, int]:
    return {f"g{number}": nodes}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_what_is_compiled_is_not_run_again_and_what_is_lost_is(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", {"a": Light(graphs=graphs(1)), "b": Light(graphs=graphs(2))})
    first = warmup(folder, "--verify", "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["finished"] == ["a", "b"]
    assert json.loads(warmup(folder, "--json").stdout)["finished"] == []
    lost = next((folder / ".shapeguard" / "neffs").rglob("*.neff"))
    lost.unlink()
    again = json.loads(warmup(folder, "--json").stdout)
    assert len(again["finished"]) == 1
    assert lost.exists()


def test_a_recipe_that_fails_is_tried_again_and_stops_no_other(tmp_path: Path) -> None:
    jobs = {
        "once": Light(graphs=graphs(1), words=(f"fail={tmp_path / 'flag'}",)),
        "never": Light(graphs=graphs(2), words=(f"fail={tmp_path / 'no' / 'folder'}",)),
        "good": Light(graphs=graphs(3)),
    }
    folder = project(tmp_path / "p", jobs)
    ran = warmup(folder, "--verify", "--json")
    told = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert told["finished"] == ["good", "once"]
    assert told["failures"] == [{"job": "never", "why": "its program ended with exit code 1"}]
    assert Counter(row["recipe"] for row in journal(folder) if row["type"] == "started")["never"] == 2
    assert not (folder / STATEMENT).exists()
    failed = json.loads((folder / ".shapeguard/warmup/statement.failed.json").read_text())
    assert failed["failures"][0]["job"] == "never"


def test_a_try_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    folder = project(tmp_path / "p", {"slow": Light(graphs=graphs(1), words=("rest=60", f"spawn={child}"))})
    begin = time.monotonic()
    ran = warmup(folder, "--timeout", "2", "--retries", "0", "--json")
    assert time.monotonic() - begin < 20
    assert json.loads(ran.stdout)["failures"] == [{"job": "slow", "why": "it ran for more than 2 s"}]
    assert not alive(int(child.read_text()))


def test_each_worker_has_neuron_cores_of_its_own(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", {f"j{n}": Light(graphs=graphs(n), words=("rest=1",)) for n in range(3)})
    seen: set[tuple[str, ...]] = set()
    process = subprocess.Popen(
        [sys.executable, "-m", "shapeguard", "warmup", "-j", "3"], cwd=folder, env=environment(folder)
    )
    while process.poll() is None:
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if b"light.py" in (path / "cmdline").read_bytes() and (path / "cwd").resolve() == folder:
                    variables = (path / "environ").read_bytes().split(b"\0")
                    found += [v.decode() for v in variables if v.startswith(b"NEURON_RT_VISIBLE_CORES=")]
            except OSError:
                continue
        seen.add(tuple(sorted(found)))
        time.sleep(0.1)
    assert tuple(f"NEURON_RT_VISIBLE_CORES={n}" for n in range(3)) in seen


def test_workers_are_held_back_so_that_their_memory_stays_under_the_limit(tmp_path: Path) -> None:
    jobs = {f"j{n}": Light(graphs=graphs(n), words=("hold=150", "rest=1")) for n in range(4)}
    folder = project(tmp_path / "p", jobs)
    process = subprocess.Popen(
        [sys.executable, "-m", "shapeguard", "warmup", "-j", "4", "--max-memory", "600M"],
        cwd=folder,
        env=environment(folder),
    )
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(_resident, _below(process.pid)[1:])))
        time.sleep(0.02)
    assert process.returncode == 0
    assert 200e6 < most < 600e6
    peaks = {row["recipe"]: row["peak_bytes"] for row in journal(folder) if row["type"] == "finished"}
    assert set(peaks) == set(jobs)
    assert all(150e6 < peak < 400e6 for peak in peaks.values())


def _below(pid: int) -> list[int]:
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _below(int(child))
    except OSError:
        pass
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def test_a_recipe_that_alone_needs_more_than_there_is_fails_by_name(tmp_path: Path) -> None:
    jobs = {"big": Light(graphs=graphs(1), words=("hold=500", "rest=3")), "small": Light(graphs=graphs(2))}
    folder = project(tmp_path / "p", jobs)
    ran = json.loads(warmup(folder, "-j", "2", "--max-memory", "300M", "--json").stdout)
    assert ran["failures"] == [{"job": "big", "why": "it takes more than --max-memory by itself"}]
    assert ran["finished"] == ["small"]


def test_shards_together_do_all_and_none_does_what_another_did(tmp_path: Path) -> None:
    jobs = {f"j{n}": Light(graphs=graphs(n, 10 + n)) for n in range(5)}
    done: list[str] = []
    for part in (1, 2, 3):
        folder = project(tmp_path / f"p{part}", jobs)
        done += json.loads(warmup(folder, "--shard", f"{part}/3", "--json", "--sim-speed", "0").stdout)["finished"]
    assert sorted(done) == sorted(jobs)


def test_a_miss_in_the_proof_is_named_with_its_reason_and_withdraws_the_statement(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", {"a": Light(graphs=graphs(1)), "b": Light(graphs=graphs(2))})
    assert warmup(folder, "--verify").returncode == 0
    assert (folder / STATEMENT).exists()
    # The program changed: its graph is another than that of the lock, which is still there.
    text = (folder / "light.py").read_text()
    (folder / "light.py").write_text(
        text.replace("enumerate(asked, 1)", "enumerate([w.replace('g2:10', 'g9:12') for w in asked], 1)")
    )
    ran = warmup(folder, "--verify", "--json")
    (miss,) = json.loads(ran.stdout)["misses"]
    assert ran.returncode == 1
    assert (miss["job"], miss["what"]) == ("b", "forward Light")
    assert "shape of x dim 1: 10 → 12" in miss["why"]
    assert not (folder / STATEMENT).exists()


def test_a_graph_that_only_one_rank_needs_is_a_miss_of_that_rank(tmp_path: Path) -> None:
    second = tmp_path / "second"
    job = Light(graphs=graphs(1), words=(f"second={second}",), world=2)
    folder = project(tmp_path / "p", {"both": job})
    assert warmup(folder).returncode == 0
    second.write_text("g2:12")
    ran = warmup(folder, "--verify", "--json")
    (miss,) = json.loads(ran.stdout)["misses"]
    assert (ran.returncode, miss["job"], miss["rank"]) == (1, "both", 1)
    assert "shape of x dim 1: 10 → 12" in miss["why"]


def _killed_and_resumed(folder: Path, rng: random.Random, longest_s: float, *words: str) -> None:
    """Kill a warm-up with everything it knows of once, at some moment."""
    command = [sys.executable, "-m", "shapeguard", "warmup", "-j", "3", "--sim-speed", "100", *words]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(rng.uniform(0.1, longest_s))
    process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    process.wait()
    until = time.monotonic() + 5
    while (left := _at_work(folder)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left, "something runs on behind a warm-up that was killed"


def _at_work(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().decode(errors="replace")
            if ("light.py" in words or "warmup.worker" in words) and (path / "cwd").resolve() == folder:
                found.append(words)
        except OSError:
            continue
    return found


def _kill_often(tmp_path: Path, *, times: int, seed: int) -> None:
    rng = random.Random(seed)
    log = tmp_path / "ends"
    log.touch()
    kills = 0
    while kills < times:
        jobs = {f"j{n}": Light(graphs={f"g{n}": 30, "both": 8}, words=(f"log={log}",)) for n in range(6)}
        folder = project(tmp_path / f"p{kills}", jobs)
        log.write_text("")
        # Some kills for each project: most while it works, some when it is about to prove.
        for _ in range(rng.randint(1, 5)):
            _killed_and_resumed(folder, rng, 3.0, "--resume", "--verify")
            kills += 1
        statement = folder / STATEMENT
        if statement.exists():
            assert (
                warmup(folder, "--check", STATEMENT, "--device", "sim", "--neff-dir", ".shapeguard/neffs").returncode
                == 0
            )
        ran = warmup(folder, "--resume", "--json", "--sim-speed", "0")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        planned = json.loads(warmup(folder, "--dry-run", "--json").stdout)
        assert planned["missing"] == []
        finished = Counter(row["recipe"] for row in journal(folder) if row["type"] == "finished")
        assert max(finished.values(), default=1) == 1, finished
        assert warmup(folder, "--verify", "--resume").returncode == 0
        assert statement.exists()


def test_a_warm_up_that_is_killed_now_and_then_ends_with_everything_there(tmp_path: Path) -> None:
    _kill_often(tmp_path, times=3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_warm_up_that_is_killed_a_hundred_times_ends_with_everything_there(tmp_path: Path) -> None:
    _kill_often(tmp_path, times=100, seed=int(os.environ.get("SHAPEGUARD_SEED", "0")))


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", {f"j{n}": Light(graphs=graphs(n), words=("rest=1",)) for n in range(4)})
    process = subprocess.Popen(
        [sys.executable, "-m", "shapeguard", "warmup", "-j", "2", "--json"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    )
    while not any(row["type"] == "finished" for row in journal(folder)):
        time.sleep(0.05)
    workers = [pid for pid in _below(process.pid)[1:] if b"warmup.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["finished"] == [f"j{n}" for n in range(4)]


def test_two_warm_ups_of_one_project_at_once_are_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "p", {"a": Light(graphs=graphs(1), words=("rest=3",))})
    command = [sys.executable, "-m", "shapeguard", "warmup"]
    first = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL)
    while not journal(folder):
        time.sleep(0.05)
    second = warmup(folder)
    assert second.returncode == 2
    assert second.stderr.startswith("error: another warm-up of this project runs now")
    assert first.wait() == 0
