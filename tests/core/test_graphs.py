from __future__ import annotations

from dataclasses import replace

import pytest

from shapeguard.core.graphs import GraphKey, ModelKey, model_key, module_key

KEY = GraphKey(graph="ab" * 32, device="simulated", target="trn2", compiler="neuronx-cc 2.21.1", flags=("-O1", "-x"))
CONFIG = {"model_type": "llama", "hidden_size": 64, "text_config": {"layers": 2, "_name_or_path": "a"}}


@pytest.mark.parametrize(
    "change",
    [
        {"graph": "cd" * 32},
        {"device": "real"},
        {"target": "trn3"},
        {"compiler": "neuronx-cc 2.22.0"},
        {"flags": ("-O2", "-x")},
        {"flags": ("-O1 -x",)},
        {"flags": ()},
    ],
)
def test_each_part_of_a_key_gives_another_id(change: dict[str, object]) -> None:
    assert replace(KEY, **change).id != KEY.id  # type: ignore[arg-type]


def test_an_id_is_the_same_in_every_process() -> None:
    # Written down once: another value here would make every cache forget all it knows.
    assert KEY.id == "133558d7db30984e5ac22e2e0e14d89bd6073530"


def test_a_models_name_path_and_version_are_not_in_its_key() -> None:
    named = {**CONFIG, "_name_or_path": "org/model", "transformers_version": "5.24.0"}
    named["text_config"] = {"layers": 2, "_name_or_path": "elsewhere"}
    assert model_key("Llama", named) == model_key("Llama", CONFIG)


@pytest.mark.parametrize("change", [{"hidden_size": 128}, {"text_config": {"layers": 3}}, {"new": None}])
def test_each_part_of_a_configuration_gives_another_key(change: dict[str, object]) -> None:
    assert model_key("Llama", {**CONFIG, **change}) != model_key("Llama", CONFIG)


def test_a_plain_modules_key_is_of_its_classes_and_parameters_in_any_order() -> None:
    one = module_key("Net", ["Linear", "ReLU"], [("a.weight", (4, 8), "float32"), ("b.weight", (8, 4), "float32")])
    other = module_key("Net", ["ReLU", "Linear"], [("b.weight", (8, 4), "float32"), ("a.weight", (4, 8), "float32")])
    assert one == other
    assert one != module_key("Net", ["Linear", "ReLU"], [("a.weight", (4, 9), "float32")])


def test_a_model_key_reads_as_name_and_configuration() -> None:
    assert str(ModelKey(name="Llama", config="0123")) == "Llama@0123"
    assert str(ModelKey(name="Llama")) == "Llama"
