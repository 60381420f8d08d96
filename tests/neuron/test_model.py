"""The compile model by itself: layouts, keys, policy; no torch."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapeguard.neuron.model.eager import Call, Spec, TypeOf, Value, key, materialised
from shapeguard.neuron.model.layouts import Kind, classify
from shapeguard.neuron.model.policy import Policy, from_environment


@pytest.mark.parametrize(
    ("shape", "stride", "offset", "expected"),
    [
        ((4, 8), (8, 1), 0, None),
        ((4, 8), (8, 1), 64, None),
        ((4, 1, 8), (8, 99, 1), 0, None),
        ((8, 4), (1, 8), 0, "permuted (1, 0)"),
        ((2, 3, 4), (12, 1, 3), 0, "permuted (0, 2, 1)"),
        ((4, 8, 32), (512, 64, 1), 0, "slice (4, 8, 64, 2, 0, 32)"),
        ((4, 8, 32), (512, 64, 1), 32, "slice (4, 8, 64, 2, 32, 64)"),
        # x[:, t, :] of (B, T, D) = (3, 5, 4), t = 2: a slice of (3, 20) from 8 to 12.
        ((3, 4), (20, 1), 8, "slice (3, 20, 1, 8, 12)"),
        ((3, 8), (0, 1), 0, "expanded (1, 8)"),
        ((3,), (5,), 2, "strided"),
        ((2, 2), (9, 2), 0, "strided"),
    ],
)
def test_a_layout_is_classified(shape: tuple, stride: tuple, offset: int, expected: str | None) -> None:
    found = classify(shape, stride, offset)
    assert (str(found) if found else None) == expected


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.randoms())
def test_every_permutation_of_a_contiguous_tensor_is_a_permutation_or_contiguous(shape: list[int], random) -> None:  # type: ignore[no-untyped-def]
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    order = list(range(len(shape)))
    random.shuffle(order)
    found = classify(tuple(shape[i] for i in order), tuple(strides[i] for i in order), 0)
    assert found is None or found.kind is Kind.PERMUTED


def call(**arguments: object) -> Call:
    return Call(op="add.Tensor", arguments=tuple(arguments.items()))  # type: ignore[arg-type]


def test_a_key_holds_names_shapes_dtypes_types_and_values() -> None:
    made = key(call(self=Spec((4, 8), "int64"), other=TypeOf("float"), alpha=Value("0.1")), Policy())
    assert made == (
        "aten::add.Tensor(self:int64[4,8],other:float,alpha:=0.1)_trn2_2_O1_--model-type_transformer_--auto-cast-none"
    )


def test_changing_compiler_flags_or_target_changes_every_key() -> None:
    one = call(self=Spec((4,), "float32"))
    policies = [Policy(), Policy(target="trn3"), Policy(compiler_flags="--x"), Policy(logical_cores="1")]
    assert len({key(one, policy) for policy in policies}) == 4


def test_sync_mode_has_no_suffix_and_materialises_what_async_folds() -> None:
    layout = classify((8, 4), (1, 8), 0)
    one = call(self=Spec((8, 4), "float32", layout))
    sync = from_environment({"NEURON_LAUNCH_BLOCKING": "1"})
    assert key(one, sync) == "aten::add.Tensor(self:float32[8,4])"
    assert [each.op for each in materialised(one, sync)] == ["contiguous"]
    assert materialised(one, Policy()) == []


def test_the_environment_means_what_it_means_to_torchneuron() -> None:
    policy = from_environment(
        {
            "NEURON_CC_FLAGS": "--opt 3",
            "NEURON_COMPILER_OPT_LEVEL": "-O3",
            "TORCH_NEURONX_ENABLE_PROLOGUE": "0",
            "TORCH_NEURONX_SKIP_OP_PRECONDITIONS": "1",
        },
        target="trn3",
    )
    assert (policy.opt_level_eager, policy.opt_level_compile) == ("O3", "O3")
    assert not policy.folds_layouts
    assert not policy.checks_bounds
    assert policy.suffix("O3").startswith("trn3_2_O3_")
