"""What changed between compiles, counted and placed; each test is a kind of program."""

from __future__ import annotations

import pytest
from event_writer import Writer, site, tensor

from shapeguard.runs.causes import Cause


def causes(run: Writer) -> list[Cause]:
    return list(run.judge().causes)


def brief(cause: Cause) -> tuple[object, ...]:
    return cause.kind, cause.input, cause.dim, cause.values, cause.count


def test_a_single_graph_has_no_cause(run: Writer) -> None:
    run.step()
    run.region(tensor("ids", 4, 9))
    run.step()
    assert causes(run) == []


def test_a_length_that_varies_is_one_cause_with_its_values_in_order(run: Writer) -> None:
    for length in (5, 3, 4, 2):
        run.step("generate")
        run.region(tensor("draft", 1, length), line=12)
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "draft", 1, (5, 3, 4, 2), 3)
    assert cause.pattern == "4 lengths, no pattern"
    assert cause.site is not None and cause.site.line == 12


def test_a_length_and_a_short_last_batch_are_two_causes(run: Writer) -> None:
    owners = [{"role": "collate", **site(14)}, {"role": "loader", **site(13)}]
    for rows, length in ((4, 9), (4, 13), (2, 9)):
        run.step("eval")
        run.region(tensor("ids", rows, length), owners=owners)
    first, second = causes(run)
    assert brief(first) == ("shape", "ids", 1, (9, 13), 1)
    assert brief(second) == ("shape", "ids", 0, (4, 2), 1)
    assert first.site is not None and second.site is not None
    assert (first.site.line, second.site.line) == (14, 13)


def test_a_short_batch_of_another_length_too_is_still_two_causes(run: Writer) -> None:
    for rows, length in ((4, 9), (4, 13), (2, 7)):
        run.step()
        run.region(tensor("ids", rows, length))
    assert {(c.dim, c.values, c.count) for c in causes(run)} == {(1, (9, 13, 7), 2), (0, (4, 2), 1)}


def test_inputs_of_one_length_are_one_cause(run: Writer) -> None:
    for length in (9, 13, 7):
        run.step()
        run.region(
            tensor("attention_mask", 4, 1, length, length, dtype="bool"),
            tensor("input_ids", 4, length),
            tensor("labels", 4, length),
            kinds=("forward", "backward"),
        )
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "input_ids", 1, (9, 13, 7), 2)
    assert set(cause.also) == {"attention_mask", "labels"}


def test_the_collated_batches_tell_the_line_and_the_last_batch(run: Writer) -> None:
    for step, rows in enumerate((4, 4, 2, 4, 4, 2)):
        run.put("batch", real=rows, padded=0, shapes={"0": [rows, 16]}, site=site(9), loader=site(8), last=rows == 2)
        run.step()
        if step in (0, 2):
            run.region(tensor("features", rows, 16, dtype="float32"), kinds=("forward", "backward"))
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "features", 0, (4, 2), 1)
    assert cause.pattern == "4, then 2 in the last batch of each epoch"
    assert cause.rules == ("SG304",)
    assert cause.site is not None and cause.site.line == 8


def test_a_search_for_the_batch_size_is_recognised(run: Writer) -> None:
    for rows in (32, 16, 8, 4):
        run.region(tensor("x", rows, 8, dtype="float32"))
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "x", 0, (32, 16, 8, 4), 3)
    assert cause.rules == ("SG306",)


def test_a_python_number_is_not_blamed_on_shapes(run: Writer) -> None:
    for step in range(5):
        run.step("generate")
        run.region(tensor("token", 1, 1), constants=[{"path": "step", "value": str(step)}], line=23)
    (cause,) = causes(run)
    assert brief(cause) == ("value", "step", None, (0, 1, 2, 3, 4), 4)
    assert cause.rules == ("SG503",)
    assert "as a tensor" in cause.advice


def test_a_float_that_changes_is_a_value(run: Writer) -> None:
    for rate in ("0.1", "0.05", "0.025"):
        run.step()
        run.region(tensor("x", 2, 2, dtype="float32"), constants=[{"path": "scale", "value": rate}])
    (cause,) = causes(run)
    assert brief(cause) == ("value", "scale", None, ("0.1", "0.05", "0.025"), 2)


def test_a_number_beside_a_length_is_a_cause_of_its_own(run: Writer) -> None:
    for step in range(4):
        run.step("generate")
        run.region(
            tensor("cache", 1, 2, 10 + step, 8, dtype="float32"), constants=[{"path": "step", "value": str(step)}]
        )
    assert {cause.kind for cause in causes(run)} == {"shape", "value"}


def test_a_size_kept_in_an_object_follows_the_shape(run: Writer) -> None:
    for budget in (20, 28):
        run.step("generate")
        run.region(
            tensor("past_key_values.layers[0].keys", 1, 2, budget, 8, dtype="float32"),
            constants=[{"path": "past_key_values.layers[0].max_cache_len", "value": str(budget)}],
        )
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "past_key_values.layers[0].keys", 2, (20, 28), 1)
    assert cause.rules == ("SG203",)
    assert "max_cache_len" in cause.advice


def test_a_list_of_another_length_is_a_value_not_a_shape(run: Writer) -> None:
    for length in (4, 2):
        run.step()
        run.region(*(tensor(f"group[{i}]", 2, 8, dtype="float32") for i in range(length)))
    (cause,) = causes(run)
    assert brief(cause) == ("value", "group", None, (4, 2), 1)
    assert cause.pattern == "4, then 2: the length of the list"


def test_an_input_that_is_sometimes_missing_is_named(run: Writer) -> None:
    run.step()
    run.region(tensor("ids", 4, 9), tensor("mask", 4, 9))
    run.step()
    run.region(tensor("ids", 4, 9))
    (cause,) = causes(run)
    assert brief(cause) == ("value", "mask", None, ("given", "absent"), 1)


def test_a_dtype_that_flips_is_one_cause(run: Writer) -> None:
    for dtype in ("int64", "int32"):
        run.step("eval")
        run.region(tensor("ids", 4, 6, dtype=dtype))
    (cause,) = causes(run)
    assert brief(cause) == ("dtype", "ids", None, ("int64", "int32"), 1)


def test_train_then_eval_is_a_mode_and_both_graphs_are_needed(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8), modes={"training": True, "grad": True}, kinds=("forward", "backward"))
    run.step("eval")
    run.region(tensor("x", 4, 8), modes={"grad": True}, kinds=("forward",))
    (cause,) = causes(run)
    assert brief(cause) == ("mode", "training", None, ("True", "False"), 1)
    assert cause.pattern == "train, then eval"
    assert "warm both up" in cause.advice


def test_an_evaluation_of_another_batch_size_is_blamed_on_the_mode_alone(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 8, 64), modes={"training": True, "grad": True})
    run.step("eval")
    run.region(tensor("x", 16, 64))
    (cause,) = causes(run)
    assert cause.kind == "mode"


def test_a_length_is_not_blamed_on_a_training_flag_that_nothing_looks_at(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 9), modes={"training": True})
    run.step()
    run.region(tensor("x", 4, 13), guard="tensor 'x' size mismatch at index 1. expected 9, actual 13")
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "x", 1, (9, 13), 1)


def test_lengths_in_train_and_eval_are_one_cause_beside_the_mode(run: Writer) -> None:
    for phase, lengths in (("train", (9, 13)), ("eval", (9, 20))):
        for length in lengths:
            run.step(phase)
            run.region(tensor("x", 4, length), modes={"grad": phase == "train"})
    found = {cause.kind: cause for cause in causes(run)}
    assert found.keys() == {"shape", "mode"}
    assert (found["shape"].values, found["shape"].count) == ((9, 13, 20), 2)


def test_autocast_that_flips_is_named(run: Writer) -> None:
    for autocast in ("bfloat16", ""):
        run.step("eval")
        run.region(tensor("x", 4, 8), modes={"autocast": autocast})
    (cause,) = causes(run)
    assert (cause.kind, cause.input) == ("mode", "autocast")
    assert cause.advice == "use one precision for both calls"


def test_requires_grad_that_flips_is_named(run: Writer) -> None:
    for grad in (True, False):
        run.step()
        run.region(tensor("x", 4, 8, dtype="float32", requires_grad=grad))
    (cause,) = causes(run)
    assert (cause.kind, cause.input, cause.pattern) == ("mode", "grad of x", "requires_grad: True, then False")


def test_a_layout_and_a_device_that_change_are_named(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8))
    run.step()
    run.region({**tensor("x", 4, 8), "layout": "permuted (1, 0)"})
    run.step()
    run.region(tensor("x", 4, 8, device="cpu"))
    assert {(c.kind, c.values) for c in causes(run)} == {
        ("layout", ("contiguous", "permuted (1, 0)")),
        ("device", ("neuron", "cpu")),
    }


def test_the_recompile_limit_is_a_cause_beside_the_lengths(run: Writer) -> None:
    for length in range(10, 20):
        run.step("eval")
        outcome = "compiled" if length < 18 else "eager-after-limit"
        if outcome == "compiled":
            run.region(tensor("ids", 1, length))
        else:
            run.compile("region", outcome, region=0, code=site(5), site=site(20), limit=8, inputs=[])
            run.eager("embedding", tensor("0", 40, 16, dtype="float32"), tensor("1", 1, length))
    first, second = causes(run)
    assert brief(first) == ("shape", "ids", 1, tuple(range(10, 18)), 7)
    assert first.pattern == "grows by 1 each time"
    assert (second.kind, second.values, second.count, second.eager) == ("limit", (8,), 2, 1)


def test_pieces_of_a_broken_graph_share_one_cause(run: Writer) -> None:
    for length in (9, 13):
        run.step()
        run.region(tensor("ids", 4, length))
        run.region(tensor("hidden", 4, length, 16, dtype="float32"), code=site(31), line=20)
    (cause,) = causes(run)
    assert brief(cause) == ("shape", "ids", 1, (9, 13), 2)


def test_two_models_of_one_class_are_two_first_graphs(run: Writer) -> None:
    for number, outcome in ((1, "compiled"), (2, "shared")):
        run.step()
        run.region(tensor("x", 4, 8), instance=number, outcome=outcome)
    assert causes(run) == []
    assert run.judge().totals.regions == 2


def test_a_guard_is_the_last_resort(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8))
    run.step()
    run.region(tensor("x", 4, 8), guard="L['self'].helper is not None", instance=0, kinds=())
    (cause,) = causes(run)
    assert (cause.kind, cause.count) == ("guard", 1)
    assert "helper is not None" in cause.guard


def test_a_guard_that_is_known_is_put_in_words(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8))
    run.step()
    run.region(tensor("x", 4, 8), guard="L['step'] == 3")
    (cause,) = causes(run)
    assert (cause.kind, cause.input) == ("value", "step")


def test_inputs_of_generate_on_the_device_make_cat_grow_by_one_each_step(run: Writer) -> None:
    run.region(tensor("ids", 1, 1))
    owners = [{"role": "move", **site(17)}]
    for step in range(20):
        run.step("generate")
        run.eager("cat", tensor("tensors[0]", 1, 12 + step), tensor("tensors[1]", 1, 1), owners=owners)
    (cause,) = causes(run)
    assert (cause.kind, cause.count, cause.eager, cause.values[0], cause.values[-1]) == ("shape", 0, 19, 12, 31)
    assert cause.pattern == "grows by 1 each step"
    assert cause.rules == ("SG201",)
    assert cause.site is not None and cause.site.line == 17
    assert "on the CPU" in cause.advice
    (operator,) = run.judge().operators
    assert operator.signatures == 20
    assert operator.growing is not None and operator.growing["by"] == 1


def test_a_cache_that_grows_is_told_from_ids_that_grow(run: Writer) -> None:
    for step in range(6):
        run.step("generate")
        run.eager("cat", tensor("tensors[0]", 1, 12 + step), tensor("tensors[1]", 1, 1))
        run.eager(
            "cat",
            tensor("tensors[0]", 1, 2, 12 + step, 8, dtype="float32"),
            tensor("tensors[1]", 1, 2, 1, 8, dtype="float32"),
        )
    assert {(cause.rules, cause.eager) for cause in causes(run)} == {(("SG201",), 5), (("SG202",), 5)}


def test_prompts_of_many_lengths_are_one_cause_over_all_operators(run: Writer) -> None:
    for length in (12, 7, 9):
        run.step("generate")
        run.eager("embedding", tensor("weight", 64, 32, dtype="float32"), tensor("indices", 1, length))
        run.eager("linear", tensor("input", 1, length, 32, dtype="float32"), tensor("weight", 32, 32, dtype="float32"))
        run.eager("mul.Tensor", tensor("self", 1, 4, length, length, dtype="float32"))
        run.step("generate")
    (cause,) = causes(run)
    assert (cause.kind, cause.eager, cause.values, cause.rules) == ("shape", 6, (12, 7, 9), ("SG204",))
    assert [op for op, _ in cause.ops] == ["embedding", "linear", "mul.Tensor"]


def test_prefill_and_decode_need_two_signatures_and_that_is_no_cause(run: Writer) -> None:
    for length in (12, 1):
        run.step("generate")
        run.eager("linear", tensor("input", 1, length, 32, dtype="float32"))
    assert causes(run) == []


def test_layers_of_different_width_are_different_calls(run: Writer) -> None:
    for width in (32, 64, 96):
        run.eager("zero_", tensor("self", width, dtype="float32"))
    run.step()
    for width in (32, 64, 96):
        run.eager("linear", tensor("input", 4, width, dtype="float32"))
    assert causes(run) == []


def test_a_learning_rate_that_is_baked_in_is_a_cause(run: Writer) -> None:
    for rate in ("-0.1", "-0.09", "-0.08"):
        run.step()
        run.eager("_foreach_add_.List", tensor("self[0]", 8, 8), constants=[{"path": "alpha", "value": rate}], line=30)
    (cause,) = causes(run)
    assert (cause.kind, cause.input, cause.eager, cause.rules) == ("value", "alpha", 2, ("SG601",))


def test_a_loss_outside_the_compiled_model_is_counted_with_its_region(run: Writer) -> None:
    for rows in (4, 2):
        run.step()
        run.region(tensor("x", rows, 16, dtype="float32"))
        run.eager("nll_loss_forward", tensor("self", rows, 3, dtype="float32"), tensor("target", rows), line=21)
    (cause,) = causes(run)
    assert (cause.count, cause.eager) == (1, 1)


def test_a_constant_that_only_one_graph_looks_at_is_no_cause_beside_a_real_one(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 9), constants=[{"path": "config.use_cache", "value": "False"}])
    run.step()
    run.region(tensor("x", 4, 13), constants=[{"path": "n", "value": "2"}])
    (cause,) = causes(run)
    assert cause.kind == "shape"


def test_a_mode_that_was_not_recorded_is_no_difference(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 9), modes={"training": None})
    run.step()
    run.region(tensor("x", 4, 13), modes={"training": True})
    (cause,) = causes(run)
    assert cause.kind == "shape"


def test_another_object_of_the_same_class_is_no_cause(run: Writer) -> None:
    guards = (
        "___check_obj_id(L['self'], 140)",
        "tensor 'self._modules['0']._parameters['weight']' size mismatch at index 0. expected 8, actual 16",
    )
    run.step()
    run.region(tensor("x", 4, 9))
    for guard in guards:
        run.step()
        run.region(tensor("x", 4, 9), guard=guard)
    assert causes(run) == []


def test_two_whole_models_in_dynamos_wrapper_are_not_compared(run: Writer) -> None:
    wrapper = {"file": "_dynamo/external_utils.py", "line": 67, "function": "inner"}
    run.step()
    run.region(tensor("args[0]", 4, 9), code=wrapper, model="Encoder")
    run.step()
    run.region(tensor("args[0]", 2, 5), code=wrapper, model="Decoder")
    assert causes(run) == []


def test_towers_that_share_a_few_operators_are_not_one_call(run: Writer) -> None:
    for length, ops in ((5, ("conv", "add.Tensor", "gelu", "tanh")), (8, ("embedding", "add.Tensor", "silu", "rsqrt"))):
        run.step("generate")
        run.step("generate")
        for op in ops:
            run.eager(op, tensor("self", 1, length, 32, dtype="float32"))
    assert causes(run) == []


def test_a_dimension_marked_dynamic_is_named(run: Writer) -> None:
    row = {"path": "x", "shape": ["s0", 8], "dtype": "float32", "layout": ""}
    run.compile("region", "failed", region=1, key="", code=site(5), site=site(9), inputs=[row])
    (cause,) = causes(run)
    assert (cause.kind, cause.input, cause.dim, cause.count, cause.rules) == ("dynamic", "x", 0, 1, ("SG401",))
    assert run.judge().steadiness.verdict == "nothing compiled: 1 region failed"


def test_a_buffer_made_for_each_budget_is_counted_with_the_cache_that_grew(run: Writer) -> None:
    for budget in (11, 15, 19):
        run.step("generate")
        run.eager("zeros", constants=[{"path": "size", "value": f"[1, 2, {budget}, 8]"}])
        run.step("generate")
        run.region(tensor("attention_mask", 1, 1, 1, budget), tensor("cache.layers[0].keys", 1, 2, budget, 8))
    (cause,) = causes(run)
    assert (cause.input, cause.count, cause.eager, cause.rules) == ("cache.layers[0].keys", 2, 2, ("SG203",))


def test_a_cache_written_by_hand_that_grows_is_to_be_allocated_once(run: Writer) -> None:
    for length in range(1, 6):
        run.step("eval")
        run.region(tensor("args[1]", 1, length, 16))
    (cause,) = causes(run)
    assert cause.pattern == "grows by 1 each time"
    assert cause.advice == "pad it to one fixed length; a buffer is allocated once at its full length and written into"


def test_all_that_grows_with_a_cat_is_one_cause_at_the_line_of_the_cat(run: Writer) -> None:
    for length in range(1, 8):
        run.step("eval")
        run.eager("embedding", tensor("weight", 64, 16, dtype="float32"), tensor("indices", length), line=30)
        run.eager("linear", tensor("input", 1, length, 16, dtype="float32"), line=31)
        run.eager("cat", tensor("tensors[0]", 1, length), tensor("tensors[1]", 1, 1), line=40)
        if 3 < length < 7:
            run.eager("mul", tensor("self", 77, (9, 4, 6)[length % 3]), line=50)
    first, *others = causes(run)
    assert (first.site and first.site.line, first.input, first.dim, first.eager) == (40, "tensors[0]", 1, 16)
    assert first.pattern == "grows by 1 each time"
    assert first.advice.startswith("`cat` lengthens it: ")
    assert [(each.site and each.site.line, each.eager) for each in others] == [(50, 2)]


def test_rows_and_their_length_that_change_in_the_same_batches_are_two_causes(run: Writer) -> None:
    for rows, length in ((1, 4), (3, 9), (2, 6)):
        run.step()
        run.region(tensor("ids", rows, length), tensor("mask", rows, length), tensor("labels", rows, length + 1))
    found = sorted((brief(cause) for cause in causes(run)), key=lambda cause: cause[2])
    assert [(path, dim, values, count) for _, path, dim, values, count in found] == [
        ("ids", 0, (1, 3, 2), 2),
        ("ids", 1, (4, 9, 6), 2),
    ]


def test_pictures_of_many_sizes_are_to_be_resized(run: Writer) -> None:
    for size in (32, 48, 64):
        run.step()
        run.region(tensor("input", 4, 3, size, size, dtype="float32"))
    (cause,) = causes(run)
    assert cause.advice == "resize every picture to one size before the model sees it"


def test_a_cache_of_the_library_that_grows_wants_one_of_fixed_length(run: Writer) -> None:
    for length in range(8, 13):
        run.step("eval")
        run.eager("cat", tensor("tensors[0]", 1, 2, length, 16, dtype="float32"), tensor("tensors[1]", 1, 2, 1, 16))
    (cause,) = causes(run)
    assert cause.advice.startswith("use a cache of fixed length (StaticCache)")


@pytest.mark.parametrize(("prompts", "line"), [((9, 5, 13), 16), ((16, 16, 16), 20)])
def test_a_tokenizers_line_owns_only_a_length_that_goes_with_what_it_gave(
    run: Writer, prompts: tuple[int, ...], line: int
) -> None:
    for prompt, length in zip(prompts, (9, 5, 13), strict=True):
        run.step("eval")
        owner = {"role": "tokenize", "path": "ids", "size": prompt, **site(16)}
        run.region(tensor("ids", 2, length), owners=[owner])
    (cause,) = causes(run)
    assert cause.site
    assert cause.site.line == line


def test_labels_that_are_shifted_by_one_have_the_length_as_their_cause(run: Writer) -> None:
    for length in (9, 5, 13):
        run.eager("sum", tensor("self", 2, length - 1))
        run.step()
        run.region(tensor("ids", 2, length))
    (cause,) = causes(run)
    assert (cause.values, cause.count, cause.eager) == ((9, 5, 13), 2, 2)


def test_ids_that_grow_in_several_calls_of_generate_still_grow(run: Writer) -> None:
    owners = [{"role": "move", **site(8)}]
    for prompt in (12, 7, 10):
        for length in range(prompt, prompt + 6):
            run.step("generate")
            run.eager("cat", tensor("tensors[0]", 1, length), tensor("tensors[1]", 1, 1), line=9, owners=owners)
    (cause,) = causes(run)
    assert (cause.pattern, cause.rules) == ("grows by 1 each step", ("SG201",))
    assert cause.site is not None and cause.site.line == 8


def test_operators_of_a_backward_are_counted_with_their_forward(run: Writer) -> None:
    for rows in (4, 5, 6):
        run.step()
        run.eager("linear", tensor("input", rows, 8, dtype="float32"))
        run.compile("eager", op="linear_backward", key=f"b{rows}", inputs=[tensor("self", rows, 8, dtype="float32")])
    (cause,) = causes(run)
    assert (cause.eager, cause.values) == (4, (4, 5, 6))
    assert cause.site is not None and cause.site.line == 20


def test_eval_without_gradients_reads_as_train_then_eval(run: Writer) -> None:
    run.step()
    run.region(tensor("x", 4, 8), modes={"training": True, "grad": True})
    run.step("eval")
    run.region(tensor("x", 4, 8))
    (cause,) = causes(run)
    assert cause.pattern == "train, then eval"
