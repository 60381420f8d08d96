"""`shapeguard report RUN --against SIMULATED`: how far a simulation predicted a run on a device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import Shapeguard


def write(folder: Path, kind: str, rows: list[dict[str, Any]], *, flags: str = "-O1") -> str:
    """Make a run folder by hand."""
    folder.mkdir(parents=True)
    device = {"kind": kind, "target": "trn2", "flags": [flags], "toolchain": {"torch": "2.14.0"}}
    start = {"type": "start", "schema": 1, "rank": 0, "pid": 1, "device": device}
    lines = [start, *rows, {"type": "end", "exit": "ok"}]
    (folder / "rank-0.pid-1.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return str(folder)


def graph(n: int, key: str, length: int, **more: Any) -> dict[str, Any]:
    inputs = [{"path": "secret_name", "shape": [2, length], "dtype": "float32", "layout": ""}]
    row = {"type": "compile", "n": n, "kind": "inference", "outcome": "compiled", "key": key, "inputs": inputs}
    return {
        **row,
        "nodes": 3,
        "name": "model_default_1",
        "site": {"file": "mine.py", "line": 3, "function": "f"},
        **more,
    }


def operator(n: int, key: str, op: str) -> dict[str, Any]:
    inputs = [{"path": "self", "shape": [4], "dtype": "float32", "layout": ""}]
    return {"type": "compile", "n": n, "kind": "eager", "outcome": "compiled", "key": key, "op": op, "inputs": inputs}


def test_a_prediction_that_came_true_is_a_hundred_percent(shapeguard: Shapeguard, tmp_path: Path) -> None:
    rows = [graph(1, "a", 4), operator(2, "b", "exp")]
    real, simulated = write(tmp_path / "real", "real", rows), write(tmp_path / "sim", "simulated", rows)
    ran = shapeguard("report", real, "--against", simulated)
    assert ran.code == 0
    assert "conformance, graphs: 100% (1 predicted)" in ran.out
    assert "conformance, eager operators: 100% (1 predicted)" in ran.out


def test_what_came_unpredicted_and_what_did_not_come_are_named(shapeguard: Shapeguard, tmp_path: Path) -> None:
    real = write(tmp_path / "real", "real", [graph(1, "a", 4), graph(2, "c", 9), operator(3, "b", "exp")])
    simulated = write(tmp_path / "sim", "simulated", [graph(1, "a", 4), graph(2, "d", 7), operator(3, "b", "exp")])
    ran = shapeguard("report", real, "--against", simulated)
    assert ran.code == 1
    assert "conformance, graphs: 33% (1 predicted, 1 not seen, 1 not predicted)" in ran.out
    assert "2×9 float32" in ran.out
    assert "2×7 float32" in ran.out


def test_a_graph_with_another_key_but_the_same_looks_counts_as_predicted(
    shapeguard: Shapeguard, tmp_path: Path
) -> None:
    real = write(tmp_path / "real", "real", [graph(1, "key on the device", 4)])
    simulated = write(tmp_path / "sim", "simulated", [graph(1, "key on the laptop", 4)])
    found = json.loads(shapeguard("report", real, "--against", simulated, "--json").out)
    assert found["conformance"]["graphs"] == {
        "share": 1.0,
        "by_key": 0.0,
        "predicted": 0,
        "predicted, another key": 1,
        "not seen": 0,
        "not predicted": 0,
    }


def test_the_file_to_share_holds_nothing_of_the_users(shapeguard: Shapeguard, tmp_path: Path) -> None:
    rows = [graph(1, "a", 4, model="SecretModel")]
    later = {"type": "outcome", "n": 1, "outcome": "compiled", "seconds": 4.5, "neuron": "ab_trn2_--dir-/home/me"}
    real = write(tmp_path / "real", "real", [*rows, later], flags="--cache_dir=/home/me/cache")
    simulated = write(tmp_path / "sim", "simulated", rows)
    ran = shapeguard("report", real, "--against", simulated, "--share", "share.json")
    text = (tmp_path / "share.json").read_text()
    assert json.loads(text)["rows"][0]["seconds"] == 4.5
    for secret in ("mine.py", "Secret", "secret_name", "/home", "model_default"):
        assert secret not in text
    assert "wrote share.json" in ran.err
    assert shapeguard("report", real, "--against", simulated, "--share", "share.json").code == 2


def test_two_runs_in_the_wrong_order_are_an_error(shapeguard: Shapeguard, tmp_path: Path) -> None:
    real, simulated = (write(tmp_path / kind, kind, [graph(1, "a", 4)]) for kind in ("real", "simulated"))
    ran = shapeguard("report", simulated, "--against", real)
    assert ran.code == 2
    assert ran.err == (
        "error: the run is no run on a device\nhint: shapeguard report REAL_RUN --against SIMULATED_RUN\n"
    )


def test_other_flags_and_releases_are_said(shapeguard: Shapeguard, tmp_path: Path) -> None:
    real = write(tmp_path / "real", "real", [graph(1, "a", 4)], flags="-O3")
    simulated = write(tmp_path / "sim", "simulated", [graph(1, "a", 4)])
    assert (
        "flags: -O1 was simulated, -O3 ran: keys differ by it" in shapeguard("report", real, "--against", simulated).out
    )
