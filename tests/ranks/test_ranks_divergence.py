"""Ranks that compile different graphs: which is named, which is expected, and what is no difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from launching import PROGRAMS, torchrun

from shapeguard.core.events import line
from shapeguard.runs.divergence import compare
from shapeguard.runs.lines import Reader
from shapeguard.runs.ranks import Divergence, Expected
from shapeguard.runs.values import Process

Event = dict[str, Any]
END: Event = {"type": "end", "exit": "ok"}


def process(rank: int, *events: Event) -> Process:
    start = {"type": "start", "rank": rank, "world_size": 4}
    return Reader().process([line(event).encode() for event in (start, *events)], rank=rank)


def step(number: int, phase: str = "train") -> Event:
    return {"type": "step", "step": number, "phase": phase, "phase_step": number}


def region(number: int, length: int, *, phase: str = "train", **more: Any) -> Event:
    return {
        "type": "compile",
        "kind": "region",
        "outcome": "compiled",
        "key": f"region {number}",
        "region": number,
        "step": number,
        "phase": phase,
        "phase_step": number,
        "code": {"file": "train.py", "line": 3, "function": "forward"},
        "site": {"file": "train.py", "line": 31, "function": "<module>"},
        "owners": [{"role": "collate", "file": "train.py", "line": 9, "function": "collate"}],
        "inputs": [{"path": "input_ids", "shape": [2, length], "dtype": "int64"}],
        **more,
    }


def graph(number: int, key: str, outline: str, exchange: str = "") -> Event:
    facts = {"region": number, "key": key, "outline": outline, "exchange": exchange, "step": number, "phase": "train"}
    return {"type": "compile", "kind": "forward", "outcome": "compiled", "phase_step": number, **facts}


def judge(*processes: Process) -> tuple[Divergence | None, tuple[Expected, ...]]:
    ranks: dict[int, list[Process]] = {}
    for each in processes:
        ranks.setdefault(each.rank, []).append(each)
    return compare(ranks)


def test_the_rank_with_another_shape_is_named_with_its_line_and_what_the_others_got() -> None:
    same = [process(rank, step(1), region(1, 64), step(2), END) for rank in (0, 2, 3)]
    other = process(1, step(1), region(1, 64), step(2), region(2, 44), END)
    found, _ = judge(*same, other)
    assert str(found) == (
        "ranks diverge at step 2, on Neuron they would hang: rank 1 got input_ids 2×44 at train.py:31 "
        "(batch from train.py:9), the others got input_ids 2×64"
    )


def test_two_ranks_with_their_own_shapes_are_both_named() -> None:
    found, _ = judge(process(0, step(1), region(1, 12), END), process(1, step(1), region(1, 15), END))
    assert found is not None
    assert [(row.rank, row.shapes) for row in found.ranks] == [(0, ("input_ids 2×12",)), (1, ("input_ids 2×15",))]


def test_equal_ranks_and_another_order_of_first_uses_are_no_difference() -> None:
    one = process(0, step(1), region(1, 64), step(2), region(2, 32), END)
    assert judge(one, process(1, step(1), region(1, 64), step(2), region(2, 32), END)) == (None, ())


def test_what_a_rank_that_broke_off_did_not_come_to_do_is_no_difference() -> None:
    whole = process(0, step(1), region(1, 64), step(2), region(2, 44), END)
    assert judge(whole, process(1, step(1), region(1, 64), step(2)))[0] is None
    other = process(1, step(1), region(1, 64), step(2), region(2, 45))
    assert judge(whole, other)[0] is not None, "but what it did is compared"


def test_a_shard_s_constants_are_expected_and_said() -> None:
    ranks = [process(r, step(1), region(1, 64), graph(1, f"key{r}", "same", "x"), END) for r in range(2)]
    found, expected = judge(*ranks)
    assert found is None
    assert [str(row) for row in expected] == [
        "1 graph differs between ranks by constants alone (train.py:31), as the offsets of their shards do"
    ]


def test_graphs_of_equal_inputs_that_exchange_other_data_diverge() -> None:
    ranks = [process(r, step(1), region(1, 64), graph(1, f"key{r}", f"o{r}", f"x{r}"), END) for r in range(2)]
    found, _ = judge(*ranks)
    assert found is not None
    assert found.kind == "exchange"


def collective(name: str, *shapes: list[int]) -> Event:
    rows = [{"path": str(index), "shape": shape, "dtype": "float32"} for index, shape in enumerate(shapes)]
    site = {"file": "train.py", "line": 5, "function": "<module>"}
    facts = {"step": 1, "phase": "train", "phase_step": 1, "inputs": rows, "site": site}
    return {"type": "compile", "kind": "collective", "outcome": "compiled", "op": name, "key": str(rows), **facts}


def test_a_collective_of_other_shapes_diverges_but_what_one_rank_scatters_does_not() -> None:
    ranks = [process(r, step(1), collective("allreduce", [4 + r]), END) for r in range(2)]
    found, _ = judge(*ranks)
    assert found is not None
    assert found.kind == "collective"
    root = process(0, step(1), collective("scatter", [4], [4], [4]), END)
    assert judge(root, process(1, step(1), collective("scatter", [4]), END)) == (None, ())


def test_one_rank_s_own_evaluation_is_no_divergence_and_is_said() -> None:
    evaluation = [step(1, "eval"), region(1, 99, phase="eval")]
    graphs = {**graph(1, "key", "o"), "phase": "eval"}
    found, expected = judge(
        process(0, step(1), region(2, 64, step=1, phase_step=1), *evaluation, graphs, END),
        process(1, step(1), region(2, 64, step=1, phase_step=1), END),
    )
    assert found is None
    assert str(expected[0]) == (
        "rank 0 alone compiles 1 graph (train.py:31): the others wait for that at their next collective"
    )


@pytest.mark.parametrize("eager", ["0", pytest.param("1", marks=pytest.mark.soak)], ids=["compiled", "eager"])
def test_a_short_last_batch_of_one_rank_fails_with_step_rank_and_line(tmp_path: Path, eager: str) -> None:
    ran = torchrun(tmp_path, "data_parallel.py", ranks=2, options=("--fail-on", "new"), SHORT="1", EAGER=eager)
    assert_short_batch_is_named(ran.code, ran.report, ran.summary)


def assert_short_batch_is_named(code: int, report: str, summary: dict[str, Any]) -> None:
    assert code == 1, report[-2000:]
    found = summary["divergence"]
    assert found["step"] == 3
    rows = {row["rank"]: row for row in found["ranks"]}
    assert rows[1]["shapes"] == ["rows 2×8"]
    assert rows[0]["shapes"] == ["rows 4×8"]
    assert rows[1]["site"]["file"].endswith("data_parallel.py")
    lines = (PROGRAMS / "data_parallel.py").read_text().splitlines()
    assert "forward(batch" in lines[rows[1]["site"]["line"] - 1]
    assert "ranks diverge at step 3, on Neuron they would hang: rank 1 got rows 2×8 at" in " ".join(report.split())
    assert "exit 1: --fail-on new: ranks diverge at step 3" in report


@pytest.mark.soak
def test_twenty_runs_in_a_row_say_the_same(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        short = str(number % 2)
        ran = torchrun(folder, "data_parallel.py", ranks=2, options=("--fail-on", "new"), SHORT=short)
        if short == "1":
            assert_short_batch_is_named(ran.code, ran.report, ran.summary)
        else:
            assert ran.code == 0, ran.report[-2000:]
            assert ran.summary["divergence"] is None
