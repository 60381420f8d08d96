from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from graph_records import record

from shapeguard.cache.select import Wanted, shapes
from shapeguard.cache.why import differences, nearest, nearest_to
from shapeguard.core.graphs import GraphInput, GraphRecord, ModelKey


def _key(**changes: object):  # type: ignore[no-untyped-def]
    return lambda each: replace(each, key=replace(each.key, **changes))


def _record(**changes: object):  # type: ignore[no-untyped-def]
    return lambda each: replace(each, **changes)


def _version(name: str, value: str):  # type: ignore[no-untyped-def]
    return lambda each: replace(each, versions={**each.versions, name: value})


def _input(path: str, **changes: object):  # type: ignore[no-untyped-def]
    return lambda each: replace(
        each, inputs=tuple(replace(one, **changes) if one.path == path else one for one in each.inputs)
    )


def _mode(name: str, value: str):  # type: ignore[no-untyped-def]
    return lambda each: replace(each, modes=tuple((n, value if n == name else v) for n, v in each.modes))


EXTRA = GraphInput(path="position_ids", shape=(8, 512), dtype="int64")
CHANGES = {
    "device": _key(device="real"),
    "target": _key(target="trn3"),
    "compiler": lambda each: _version("neuronx-cc", "2.22.0")(_key(compiler="neuronx-cc 2.22.0")(each)),
    "flags": _key(flags=("--model-type transformer", "--auto-cast=all")),
    "world size": _record(world_size=2),
    "tp": _record(tp=4),
    "model": _record(model=ModelKey(name="Qwen3ForCausalLM", config="0123456789ab")),
    "model configuration": _record(model=ModelKey(name="LlamaForCausalLM", config="ffffffffffff")),
    "kind": _record(kind="inference"),
    "torch": _version("torch", "2.14.0"),
    "transformers": _version("transformers", "5.25.0"),
    "torch-neuronx": _version("torch-neuronx", "2.14.3"),
    "nki": _version("nki", "0.3"),
    "python": _version("python", "3.12.1"),
    "shape of input_ids": _input("input_ids", shape=(8, 640)),
    "shape of labels": _input("labels", shape=(4, 512)),
    "dtype of input_ids": _input("input_ids", dtype="int32"),
    "stride of input_ids": _input("input_ids", layout="permuted (1, 0)"),
    "shape of position_ids": lambda each: replace(each, inputs=(*each.inputs, EXTRA)),
    "constant scale": lambda each: replace(each, constants=(("scale", "0.25"), *each.constants[1:])),
    "constant depth": lambda each: replace(each, constants=(*each.constants, ("depth", "3"))),
    "mode autocast": _mode("autocast", "off"),
    "mode grad": _mode("grad", "False"),
    "mode training": _mode("training", "False"),
}


def _changed(name: str, base: GraphRecord) -> GraphRecord:
    other = CHANGES[name](base)
    return replace(other, key=replace(other.key, graph="f" * 64))


@pytest.mark.parametrize("part", CHANGES)
def test_the_part_that_differs_is_named_and_only_it(part: str) -> None:
    assert [row.part for row in differences(_changed(part, record(1)), record(1))] == [part]
    assert [row.part for row in differences(record(1), _changed(part, record(1)))] == [part]


@pytest.mark.parametrize(
    ("one", "other"), [p for p in combinations(CHANGES, 2) if p != ("model", "model configuration")]
)
def test_two_parts_that_differ_are_both_named(one: str, other: str) -> None:
    changed = _changed(other, _changed(one, record(1)))
    assert sorted(row.part for row in differences(changed, record(1))) == sorted((one, other))


@pytest.mark.parametrize("part", CHANGES)
def test_the_nearest_is_the_graph_that_differs_in_one_part_only(part: str) -> None:
    wanted = record(1)
    near = _changed(part, wanted)
    others = [name for name in CHANGES if name != part and {name, part} != {"model", "model configuration"}]
    far = [_changed(name, near) for name in others]
    found = nearest(wanted, [*far, near])
    assert found is not None
    assert found.record == near


def test_where_nothing_recorded_differs_the_program_is_named() -> None:
    assert [row.part for row in differences(record(1), record(2))] == ["program"]


def test_what_does_not_decide_a_graph_is_not_named() -> None:
    same = replace(record(1), compile_s=3.0, jobs=("b",), hits=9, last_seen=5, nodes=7, source="import", name="x")
    same = replace(same, versions={**same.versions, "shapeguard": "9.9"})
    assert differences(same, record(1)) == ()


def test_the_sizes_that_differ_are_named_with_their_dimension() -> None:
    (row,) = differences(
        record(1, inputs=record(1).inputs[:1], shape=(8, 640)), record(2, inputs=record(2).inputs[:1])
    ) or (None,)
    assert row is not None and row.part == "program"
    wanted = replace(record(1), inputs=(GraphInput(path="x", shape=(4, 640), dtype="int64"),))
    known = replace(record(2), inputs=(GraphInput(path="x", shape=(8, 512), dtype="int64"),))
    (row,) = differences(wanted, known)
    assert (row.wanted, row.found, row.detail) == ("4×640", "8×512", "dim 0: 8 → 4, dim 1: 512 → 640")


def test_the_nearest_length_is_chosen() -> None:
    known = [record(n, shape=(8, length)) for n, length in enumerate((128, 512, 640, 4096))]
    found = nearest_to(Wanted(model="LlamaForCausalLM", shapes=shapes("8x600")), known)
    assert found is not None
    assert found.record.inputs[0].shape == (8, 640)
    assert [(row.part, row.detail) for row in found.differences] == [("shape of input_ids", "dim 1: 640 → 600")]


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        (Wanted(model="LlamaForCausalLM", shapes=shapes("8x512")), []),
        (Wanted(model="LlamaForCausalLM", shapes=shapes("input_ids=8x512:int64,labels=8x512")), []),
        (Wanted(model="LlamaForCausalLM", shapes=shapes("input_ids=8x512:int32")), ["dtype of input_ids"]),
        (Wanted(model="LlamaForCausalLM", shapes=shapes("pixel_values=8x3x224x224")), ["shape of pixel_values"]),
        (Wanted(model="LlamaForCausalLM", batch=8, length=512, dtype="bfloat16"), []),
        (Wanted(model="LlamaForCausalLM", batch=4), ["batch"]),
        (Wanted(model="LlamaForCausalLM", length=500), ["length"]),
        (Wanted(model="LlamaForCausalLM", tp=2), ["tp"]),
        (Wanted(model="LlamaForCausalLM", target="trn3"), ["target"]),
        (Wanted(model="LlamaForCausalLM", device="real"), ["device"]),
        (Wanted(model="LlamaForCausalLM", dtype="float16"), ["dtype"]),
        (Wanted(model="LlamaForCausalLM@0123"), []),
        (Wanted(model="LlamaForCausalLM@ffff"), ["model configuration"]),
        (Wanted(model="Gemma"), ["model"]),
    ],
)
def test_only_what_a_user_asked_for_is_compared(wanted: Wanted, parts: list[str]) -> None:
    found = nearest_to(wanted, [record(1)])
    assert found is not None
    assert [row.part for row in found.differences] == parts
