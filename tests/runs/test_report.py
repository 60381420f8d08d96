"""A run judged as a whole: totals, verdict, ranks, difference, and what a damaged file costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from event_writer import Writer, site, tensor

from shapeguard.core.errors import Exit, UsageError
from shapeguard.core.report import Report, Table, Text
from shapeguard.runs.diff import compare
from shapeguard.runs.series import describe
from shapeguard.runs.stream import read_run
from shapeguard.runs.summary import Summary, document, summarise
from shapeguard.runs.view import report


def train(run: Writer, sizes: tuple[int, ...], steps: int = 8) -> Summary:
    for step in range(steps):
        run.step()
        if step < len(sizes):
            run.region(tensor("x", sizes[step], 8), kinds=("forward", "backward"))
    run.end()
    return run.judge()


def texts(found: Report) -> list[str]:
    return [part.text for part in found.sections if isinstance(part, Text)]


def test_regions_and_eager_operators_are_counted_apart(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8), kinds=("forward", "backward"))
    run.region(tensor("x", 4, 8), kinds=("forward", "backward"), outcome="shared", code=site(50))
    run.region(tensor("x", 5, 8), kinds=(), outcome="failed")
    run.eager("add.Tensor", tensor("self", 4))
    run.eager("add.Tensor", tensor("self", 5))
    run.compile("collective", op="all_reduce", key="c", inputs=[tensor("self", 4)])
    totals = run.judge().totals
    assert totals.plain() == {
        "regions": 2,
        "aot_graphs": {"forward": 2, "backward": 2, "inference": 0},
        "neffs": 2,
        "eager": 2,
        "collective": 1,
        "after_warmup": {"regions": 0, "eager": 0},
        "disk": 0,
        "fallback_ops": 0,
        "limits": 0,
        "failed": 1,
        "unsure": {"neffs": 0, "eager": 0},
    }


def test_the_verdict_of_a_steady_run_names_its_last_compile(run: Writer) -> None:
    found = train(run, (4,))
    assert found.steadiness.verdict == "steady after step 1: nothing compiled after warm-up (8 steps seen)"
    assert found.steadiness.after == 1


def test_the_verdict_of_a_run_that_goes_on_compiling_counts_what_came_late(run: Writer) -> None:
    found = train(run, (4, 5, 6, 7))
    assert found.steadiness.verdict == ("still compiling: 2 of 4 regions came after warm-up (the last at step 4 of 8)")
    assert found.steadiness.after is None


def test_an_evaluation_that_first_runs_late_is_no_recompile(run: Writer) -> None:
    train(run, (4,))
    for _ in range(3):
        run.step("eval")
    run.region(tensor("x", 4, 8), code=site(90))
    for _ in range(14):
        run.step()
    assert run.judge().steadiness.verdict == (
        "steady after step 11: what compiled after warm-up did so for the first time (25 steps seen)"
    )


def test_a_run_of_one_step_is_too_short_to_tell(run: Writer) -> None:
    assert train(run, (4,), steps=1).steadiness.verdict == (
        "only 1 step was seen: too few to say whether it stays steady"
    )


def test_warm_up_is_counted_in_each_phase(run: Writer) -> None:
    train(run, (4,))
    run.step("eval")
    run.region(tensor("x", 9, 8), modes={"grad": True})
    assert run.judge().totals.late_regions == 0


def test_placement_stands_before_everything_else(run: Writer) -> None:
    train(run, (4, 5, 6))
    run.put("placement", model="LlamaForCausalLM", device="cpu", site=site(9), loaded=site(7), how="device_map=auto")
    first = texts(report(run.judge(), folder="run"))[0]
    assert first == (
        "LlamaForCausalLM ran on the CPU: nothing of it would run on Neuron (device_map=auto); loaded so at train.py:7"
    )


def test_the_report_says_that_it_was_simulated_and_where_the_run_is(run: Writer) -> None:
    found = texts(report(train(run, (4,)), folder="runs/train-1"))
    assert any("never run on Trainium" in text for text in found)
    assert found[-1] == "run: runs/train-1"


@pytest.mark.parametrize("by", ["cause", "graph", "shape", "rank", "line"])
def test_every_way_of_looking_has_a_table(run: Writer, by: str) -> None:
    train(run, (4, 5))
    found = report(run.judge(), folder="run", by=by)
    assert any(isinstance(part, Table) and part.rows for part in found.sections)


def test_a_summary_is_the_same_for_the_same_lines(run: Writer, tmp_path: Path) -> None:
    first = document(train(run, (4, 5, 6)))
    again = tmp_path / "again"
    again.mkdir()
    second = document(train(Writer(again, pid=99), (4, 5, 6)))
    assert json.dumps(first) == json.dumps(second)


def test_ranks_that_are_equal_are_counted_once_and_do_not_diverge(tmp_path: Path) -> None:
    for rank in range(2):
        train(Writer(tmp_path, rank=rank, world_size=2, pid=10 + rank), (4, 5))
    found = summarise(read_run(tmp_path))
    assert (found.totals.regions, found.ranks[0].regions, found.ranks[1].regions) == (2, 2, 2)
    assert [cause.count for cause in found.causes] == [1]
    assert found.divergence is None
    assert {tuple(graph.ranks) for graph in found.graphs} == {(0, 1)}


def test_the_first_step_at_which_ranks_differ_is_named(tmp_path: Path) -> None:
    for rank, last in ((0, 64), (1, 44)):
        writer = Writer(tmp_path, rank=rank, world_size=2, pid=10 + rank)
        for length in (64, last):
            writer.step()
            if length != 64 or writer.step_number == 1:
                writer.region(tensor("ids", 2, length), line=33)
        # Without its last line a rank counts as broken off, and what it did not come to do is no difference.
        writer.end()
    found = summarise(read_run(tmp_path))
    assert found.divergence is not None and found.divergence.step == 2
    assert texts(report(found, folder="run"))[0] == (
        "ranks diverge at step 2, on Neuron they would hang: rank 1 got ids 2×44 at train.py:33, rank 0 got ids 2×64"
    )


def test_ranks_with_other_constants_are_expected_to_differ_in_keys(tmp_path: Path) -> None:
    for rank in range(2):
        writer = Writer(tmp_path, rank=rank, world_size=2, pid=10 + rank)
        writer.step()
        writer.region(tensor("ids", 2, 8), constants=[{"path": "offset", "value": str(32 * rank)}])
    assert summarise(read_run(tmp_path)).divergence is None


def test_a_torn_last_line_costs_that_line_and_a_broken_one_is_named(run: Writer) -> None:
    train(run, (4,))
    with run.path.open("a") as stream:
        stream.write("not json\n[1]\n" + json.dumps({"type": "compile", "n": "x"}) + '\n{"type": "compi')
    found = run.judge()
    assert found.totals.regions == 1
    assert [trouble.message for trouble in found.troubles] == [
        "line 14 of the event file cannot be read",
        "line 15 of the event file cannot be read",
        "a line of type 'compile' cannot be read",
    ]


def test_lines_of_a_newer_release_are_passed_over(run: Writer) -> None:
    run.put("hologram", depth=3)
    train(run, (4,))
    assert run.judge().troubles == ()


def test_a_folder_that_is_no_run_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run; give the folder that `shapeguard trace` named"):
        read_run(tmp_path)
    with pytest.raises(UsageError, match="is no run folder"):
        read_run(tmp_path / "nothing")


def test_a_difference_names_the_input_and_fails_where_more_regions_compile(tmp_path: Path) -> None:
    runs = []
    for name, sizes in (("old", (4,)), ("new", (4, 6))):
        (tmp_path / name).mkdir()
        runs.append(train(Writer(tmp_path / name), sizes))
    worse, better, same = compare(*runs), compare(*reversed(runs)), compare(runs[0], runs[0])
    assert (worse.exit_code, better.exit_code, same.exit_code) == (Exit.FINDINGS, Exit.CLEAN, Exit.CLEAN)
    assert texts(worse) == ["more regions compile: 1 → 2"]
    assert texts(same) == ["as many regions: 1 → 1", "the graphs are the same"]


def test_a_graph_that_took_anothers_place_is_shown_as_changed(tmp_path: Path) -> None:
    runs = []
    for name, size in (("old", 4), ("new", 6)):
        (tmp_path / name).mkdir()
        runs.append(train(Writer(tmp_path / name), (size,)))
    (table,) = [part for part in compare(*runs).sections if isinstance(part, Table)]
    assert [(row[0], row[1], row[3]) for row in table.rows] == [
        ("~", "forward", "x 4×8 → 6×8"),
        ("~", "backward", "x 4×8 → 6×8"),
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((9, 13), "9, then 13"),
        ((10, 11, 12), "grows by 1 each time"),
        ((30, 20, 10), "shrinks by 10 each time"),
        ((32, 16, 8), "halves each time"),
        ((8, 16, 32), "doubles each time"),
        ((5, 9, 30), "3 lengths, growing"),
        ((128, 64, 256, 192), "4 lengths, all multiples of 64"),
        ((5, 3, 4, 2), "4 lengths, no pattern"),
        (("int64", "int32"), "int64, then int32"),
    ],
)
def test_a_row_of_values_is_put_in_words(values: tuple[int | str, ...], text: str) -> None:
    assert describe(values, noun="lengths") == text


def test_ten_thousand_growing_signatures_are_one_series(run: Writer) -> None:
    lines = []
    for n in range(1, 10_001):
        lines.append(json.dumps({"type": "step", "step": n, "phase": "train", "phase_step": n}))
        event = {"type": "compile", "n": n, "kind": "eager", "outcome": "compiled", "op": "cat", "key": str(n)}
        event |= {"inputs": [tensor("a", 1, n), tensor("b", 1, 1)], "site": site(9), "phase": "train", "step": n}
        lines.append(json.dumps({**event, "phase_step": n, "stack": [site(9)]}))
    run.path.write_text("\n".join(lines) + "\n")
    found = run.judge()
    assert found.operators[0].signatures == 10_000
