"""Causes that once were wrong: each test is a kind of program, with the right value."""

from __future__ import annotations

from typing import Any

from event_writer import Writer, site, tensor

from shapeguard.runs.causes import Cause
from shapeguard.runs.tables import causes_text, cost, what


def causes(run: Writer) -> list[Cause]:
    return list(run.judge().causes)


def line(cause: Cause) -> int:
    assert cause.site is not None
    return cause.site.line


def piece(number: int) -> dict[str, Any]:
    return {"file": "train.py", "line": number, "function": f"torch_dynamo_resume_in_forward_at_{number}"}


def broken_at(run: Writer, number: int, reason: str, *, is_loop: bool = False) -> None:
    run.put("break", reason=reason, site=site(number), code=site(5), resumes=number, is_loop=is_loop)


def test_a_value_that_is_read_breaks_the_graph_at_its_line(run: Writer) -> None:
    run.step("eval")
    broken_at(run, 13, "Unsupported Tensor.item() call with capture_scalar_outputs=False")
    run.region(tensor("x", 4, 8, dtype="float32"))
    for step in range(3):
        if step:
            run.step("eval")
        run.region(tensor("hidden", 4, 16), code=piece(13), line=13, guard="2/0: ___stack0 == …" if step else "")
    (cause,) = causes(run)
    assert (cause.kind, cause.count, cause.rules, line(cause)) == ("break", 3, ("SG502",), 13)
    assert "___stack" not in what(cause)
    assert "breaks the graph" in what(cause)


def test_any_other_break_is_told_with_its_reason(run: Writer) -> None:
    run.step()
    broken_at(run, 9, "Failed to trace builtin operator")
    run.region(tensor("x", 4, 8))
    run.region(tensor("y", 4, 8), code=piece(9), line=9)
    (cause,) = causes(run)
    assert (cause.kind, cause.count, cause.rules, line(cause)) == ("break", 1, (), 9)
    assert "Failed to trace builtin operator" in what(cause)


def test_a_break_in_a_loop_says_that_the_whole_function_runs_eagerly(run: Writer) -> None:
    run.step("eval")
    broken_at(run, 9, "Data-dependent branching", is_loop=True)
    run.eager("linear", tensor("input", 4, 8))
    (cause,) = causes(run)
    assert (cause.kind, cost(cause), line(cause)) == ("break", "nothing compiled", 9)
    assert "the whole function runs eagerly" in what(cause)


def test_rows_cut_by_a_mask_are_blamed_on_the_line_that_cuts(run: Writer) -> None:
    for rows in (39, 37, 36):
        run.step("eval")
        if rows == 39:
            run.eager("nonzero", tensor("self", 4, 12, dtype="bool"), line=18)
        run.eager("index.Tensor", tensor("self", 48, 16, dtype="float32"), tensor("indices[0]", rows), line=18)
        run.region(tensor("vectors", rows, 16, dtype="float32"), line=19)
    (cause,) = causes(run)
    assert (cause.count, cause.rules, cause.role, line(cause)) == (2, ("SG501",), "cut", 18)


def test_rows_looked_up_by_a_list_of_varying_length_are_no_cut(run: Writer) -> None:
    for rows in (5, 9, 7):
        run.step("eval")
        run.eager("index.Tensor", tensor("self", 48, 16, dtype="float32"), tensor("indices[0]", rows), line=18)
        run.region(tensor("vectors", rows, 16, dtype="float32"), line=19)
    assert [cause.role for cause in causes(run)] == [""]


def test_models_of_one_class_and_other_sizes_have_no_cause(run: Writer) -> None:
    for number, width in enumerate((16, 24, 48), start=1):
        for _ in range(5):
            run.step()
            run.eager("linear", tensor("input", 4, width, dtype="float32"), instance=number)
    assert causes(run) == []


def test_slices_that_follow_a_length_are_counted_with_it(run: Writer) -> None:
    for length in (20, 29, 25):
        run.step()
        run.eager("embedding", tensor("indices", 4, length), line=20)
        for offset in range(4):
            layout = f"slice (4, {length * 16}, 1, {offset * 16}, {offset * 16 + 16})"
            run.eager("mm", {**tensor("self", 4, 16, dtype="float32"), "layout": layout}, line=16)
    (cause,) = causes(run)
    assert (cause.values, cause.eager) == ((20, 29, 25), 2 + 8)


def test_a_layout_is_said_in_words(run: Writer) -> None:
    for layout in ("", "slice (4, 320, 1, 288, 304)"):
        run.step()
        run.region({**tensor("x", 4, 8), "layout": layout})
    (cause,) = causes(run)
    assert what(cause) == "x layout: contiguous, then a slice of a larger tensor"


def test_prompts_of_many_lengths_are_told_beside_a_sequence_that_grows(run: Writer) -> None:
    for length in (12, 7, 19):
        for step in range(6):
            run.step("generate")
            if not step:
                run.eager("linear", tensor("input", 1, length, 32, dtype="float32"))
                run.eager("embedding", tensor("weight", 64, 32, dtype="float32"), tensor("indices", 1, length))
            run.eager("cat", tensor("tensors[0]", 1, length + step), tensor("tensors[1]", 1, 1))
    assert {(cause.rules, cause.eager) for cause in causes(run)} == {(("SG204",), 4), (("SG201",), 16)}


def test_regions_that_two_causes_share_are_said_to_be(run: Writer) -> None:
    for rows, length in ((4, 9), (4, 13), (2, 7)):
        run.step()
        run.region(tensor("ids", rows, length))
    first, second = causes(run)
    assert (first.count, first.overlap, second.count, second.overlap) == (2, 0, 1, 1)
    assert "1 more region (1 of them counted above too)" in causes_text([first, second])[0].text


def test_the_line_that_moves_an_input_is_named_where_no_loader_makes_it(run: Writer) -> None:
    moves = [{"role": "move", "path": "ids", **site(12)}, {"role": "move", "path": "mask", **site(14)}]
    for length in (5, 16, 13):
        run.step("eval")
        run.region(tensor("ids", 1, length), tensor("mask", 1, length), owners=moves, line=17)
    (cause,) = causes(run)
    assert (line(cause), cause.role) == (12, "move")


def test_the_line_that_marks_a_size_dynamic_is_named(run: Writer) -> None:
    owners = [{"role": "dynamic", **site(8)}]
    run.compile("region", "failed", code=site(5), site=site(10), inputs=[tensor("x", "s0", 8)], owners=owners)  # type: ignore[arg-type]
    (cause,) = causes(run)
    assert (cause.kind, cause.role, line(cause)) == ("dynamic", "dynamic", 8)


def test_processes_of_one_rank_share_their_causes(run: Writer) -> None:
    for writer in (run, Writer(run.folder, pid=8), Writer(run.folder, pid=9)):
        for length in (5, 9, 7):
            writer.step("eval")
            writer.region(tensor("ids", 1, length))
    (cause,) = causes(run)
    assert (cause.values, cause.count) == ((5, 9, 7), 6)


def test_buckets_are_not_told_to_become_one_length(run: Writer) -> None:
    for step, length in enumerate((48, 16, 48, 32, 16, 48, 32, 16, 48, 32, 48, 16)):
        run.put("batch", shapes={"0": [2, length]}, site=site(9), loader=site(20), last=False)
        run.step()
        if step in (0, 1, 3):
            run.region(tensor("ids", 2, length))
    (cause,) = causes(run)
    assert "buckets" in cause.pattern
    assert "warm all of them up" in cause.advice
    assert cause.rules == ()


def test_a_graph_that_was_known_needs_no_mending(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8), kinds=("forward",))
    run.step()
    run.compile("forward", "shared", region=2, name="again", key="k", inputs=[tensor("x", 4, 8)])
    run.regions += 1
    run.region(tensor("x", 4, 8), kinds=(), guard="0/0: self.config.problem_type is None")
    run.put("end", exit="ok", steps=2)
    found = [cause for cause in causes(run) if cause.kind == "guard"]
    assert [cause.guard for cause in found] == ["0/0: self.config.problem_type is None"]
    assert not what(found[0]).count("0/0")


def test_batches_tell_the_lengths_of_their_rows(run: Writer) -> None:
    from shapeguard.runs.stream import read_run

    run.put("batch", shapes={"input_ids": [3, 9]}, rows=[9, 4, 4], real=17, padded=10)
    (process,) = read_run(run.folder).processes
    assert process.rows == {9: 1, 4: 2}
