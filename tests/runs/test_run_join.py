"""What stands around the causes: the finding behind one, what compiles cost, the line that runs along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from event_writer import Writer, site, tensor

from shapeguard.core import events
from shapeguard.core.graphs import GraphKey, GraphRecord, ModelKey
from shapeguard.runs.cost import ENOUGH, estimate
from shapeguard.runs.live import Follower
from shapeguard.runs.stream import read_run
from shapeguard.runs.summary import summarise
from shapeguard.runs.view import report

PROGRAM = """\
import torch
from torch.utils.data import DataLoader
from torch.nn.utils.rnn import pad_sequence


def collate(rows):
    return pad_sequence(rows, batch_first=True)


def train(rows):
    loader = DataLoader(rows, batch_size=4, collate_fn=collate)
    for ids in loader:
        loss = ids.sum()
        loss.backward()
"""


def project(folder: Path) -> Path:
    (folder / "train.py").write_text(PROGRAM)
    (folder / "other.py").write_text(PROGRAM)
    (folder / "run").mkdir()
    run = Writer(folder / "run")
    owners = [{"role": "collate", **site(6)}, {"role": "loader", **site(11)}]
    for rows, length in ((4, 9), (4, 13), (4, 7), (4, 11), (2, 9)):
        run.step()
        run.region(tensor("ids", rows, length), owners=owners, line=13)
    run.end()
    return folder


def shapeguard(folder: Path, *words: str, **environ: str) -> Any:
    env = {**os.environ, "SHAPEGUARD_NO_CACHE": "1", "COLUMNS": "200", **environ}
    command = [sys.executable, "-m", "shapeguard", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_a_cause_shows_the_finding_behind_it(tmp_path: Path) -> None:
    out = shapeguard(project(tmp_path), "report", "run").stdout
    assert "[SG302, train.py:7]" in out
    assert "[SG304, train.py:11]" in out


def test_findings_are_ranked_by_what_they_cost_in_a_run(tmp_path: Path) -> None:
    done = shapeguard(project(tmp_path), "lint", ".", "--isolated", "--with-run", "run", "--output-format", "concise")
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("train.py", "other.py"))]
    assert lines[0].startswith("train.py:7:") and "(3 more regions, 2 after warm-up in this run)" in lines[0]
    assert lines[1].startswith("train.py:11:") and "(1 more region, 1 after warm-up in this run)" in lines[1]
    assert all("never ran on the device in this run" in line for line in lines if line.startswith("other.py"))
    assert len(lines) == 4


def test_a_folder_that_is_no_run_is_told_in_one_line(tmp_path: Path) -> None:
    done = shapeguard(project(tmp_path), "lint", ".", "--isolated", "--with-run", "nowhere")
    assert (done.returncode, "nowhere" in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def record(graph: str, nodes: int, seconds: float | None) -> GraphRecord:
    key = GraphKey(graph=graph, device="real", target="trn2")
    return GraphRecord(key=key, model=ModelKey(name="M"), kind="forward", nodes=nodes, compile_s=seconds)


def costs(folder: Path, records: list[GraphRecord]) -> tuple[str, dict[str, object]]:
    run = Writer(folder)
    run.step()
    run.compile("forward", region=1, name="m", key="abc", inputs=[tensor("x", 4)], nodes=100)
    found = estimate(summarise(read_run(folder)).graphs, records)
    return str(found), found.plain()


def test_an_unknown_cost_is_said_to_be_unknown_and_never_nothing(tmp_path: Path) -> None:
    text, plain = costs(tmp_path, [record("other", 50, 300.0)] * (ENOUGH - 1))
    assert text.startswith("compile time of the graphs: unknown")
    assert (plain["low_s"], plain["high_s"], plain["num_unknown"]) == (None, None, 1)


def test_a_record_of_the_same_graph_tells_what_it_cost(tmp_path: Path) -> None:
    text, plain = costs(tmp_path, [record("abc", 100, 300.0), record("abc", 100, 360.0)])
    assert text == "compile time of the graphs: 5 min to 6 min (recorded)"
    assert plain["sources"] == ["recorded"]


def test_enough_own_records_give_a_range(tmp_path: Path) -> None:
    records = [record(f"g{number}", 100, 60.0 + number) for number in range(ENOUGH)]
    text, plain = costs(tmp_path, records)
    assert "(estimated)" in text
    low, high = plain["low_s"], plain["high_s"]
    assert isinstance(low, float) and isinstance(high, float) and 60 <= low < high <= 68


def test_a_measured_compile_comes_before_any_record(tmp_path: Path) -> None:
    run = Writer(tmp_path)
    run.step()
    run.compile("forward", region=1, name="m", key="abc", inputs=[tensor("x", 4)], nodes=100, seconds=42.0)
    found = estimate(summarise(read_run(tmp_path)).graphs, [record("abc", 100, 300.0)])
    assert str(found) == "compile time of the graphs: 42 s (measured)"


def test_the_live_line_counts_each_event_once_and_waits_for_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.pid-1.jsonl"
    follower = Follower(tmp_path)
    region = {"type": "compile", "kind": "region", "step": 3, "phase_step": 3}
    path.write_text(events.line({"type": "start", "warmup_steps": 2}) + events.line({"type": "step", "step": 3}))
    with path.open("a") as stream:
        stream.write(events.line({**region, "phase_step": 2}) + events.line(region)[:30])
    assert follower.look() == "shapeguard: step 1, 1 regions (0 after warm-up), 0 eager signatures"
    with path.open("a") as stream:
        stream.write(events.line(region)[30:])
    assert follower.look() == "shapeguard: step 1, 2 regions (1 after warm-up), 0 eager signatures"
    assert follower.look() == "shapeguard: step 1, 2 regions (1 after warm-up), 0 eager signatures"


def test_the_report_shows_the_share_of_padding_and_the_cost(tmp_path: Path) -> None:
    run = Writer(tmp_path)
    run.put("batch", shapes={"input_ids": [2, 10]}, real=15, padded=5)
    run.step()
    run.region(tensor("x", 4))
    texts = [getattr(part, "text", "") for part in report(summarise(read_run(tmp_path)), folder="run").sections]
    assert "padding: 25% of 20 tokens" in texts
    assert any(text.startswith("compile time of the graphs: unknown") for text in texts)


def test_a_package_that_pip_unpacked_into_the_project_is_not_the_users_code(tmp_path: Path) -> None:
    from shapeguard.trace.sites import Sites

    vendor = tmp_path / "vendor"
    (vendor / "helper").mkdir(parents=True)
    (vendor / "helper-1.0.dist-info").mkdir()
    (vendor / "helper-1.0.dist-info" / "RECORD").write_text("helper/__init__.py,,\nhelper-1.0.dist-info/RECORD,,\n")
    sites = Sites(str(tmp_path))
    assert not sites.is_users_file(str(vendor / "helper" / "__init__.py"))
    assert sites.is_users_file(str(vendor / "own.py"))
    assert sites.is_users_file(str(tmp_path / "train.py"))


def test_a_run_folder_deleted_by_the_program_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("import shutil, torch\nshutil.rmtree('out')\n")
    done = shapeguard(tmp_path, "trace", "--run-dir", "out", "clean.py")
    assert done.returncode == 2
    assert "the run folder out is gone: it was deleted while the program ran" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("by", ["cause", "graph", "shape", "rank", "line"])
def test_every_way_to_list_a_run_shows_something(by: str, tmp_path: Path) -> None:
    done = shapeguard(project(tmp_path), "report", "run", "--by", by)
    assert done.returncode == 0, done.stderr
    assert {"cause": "train.py:6", "graph": "inference", "shape": "4×9", "rank": "regions", "line": "train.py:13"}[
        by
    ] in done.stdout
