"""Keys of the compile model by themselves: what is in them, what is not."""

from __future__ import annotations

import pytest

from shapeguard.neuron.model.copies import cast, into
from shapeguard.neuron.model.eager import Call, Spec, TypeOf, Value, certainty, key, materialised
from shapeguard.neuron.model.extras import parts
from shapeguard.neuron.model.layouts import classify
from shapeguard.neuron.model.policy import Policy, from_environment
from shapeguard.neuron.model.tables import BY_VALUE, REGISTERED, REGISTERED_BY_HAND


def call(op: str = "add.Tensor", **arguments: object) -> Call:
    return Call(op=op, arguments=tuple(arguments.items()))  # type: ignore[arg-type]


X = Spec((4, 8), "float32")


# The outside check 26 of the facts, section 6.
def test_check_26_a_key_holds_name_shapes_and_dtypes_and_differs_with_them() -> None:
    one = key(call(self=X, other=X), Policy())
    assert all(part in one for part in ("add.Tensor", "4,8", "float32"))
    assert one == key(call(self=X, other=X), Policy())
    others = [
        call(self=X, other=Spec((4, 1), "float32")),
        call(self=X, other=Spec((4, 8), "float16")),
        call(self=X, other=X, alpha=Value("2")),
        call("sub.Tensor", self=X, other=X),
    ]
    assert len({one, *(key(other, Policy()) for other in others)}) == 5


def test_a_keyword_is_keyed_by_name_and_what_it_holds() -> None:
    keys = {
        key(call(self=X, **keyword), Policy())
        for keyword in (
            {"weight": TypeOf("float")},
            {"bias": TypeOf("float")},
            {"weight": TypeOf("int")},
            {"weight": X},
            {"weight": Spec((4, 8), "int64")},
        )
    }
    assert len(keys) == 5


def test_the_suffix_holds_target_cores_level_and_flags() -> None:
    environments = [
        {},
        {"NEURON_LOGICAL_NC_CONFIG": "1"},
        {"NEURON_COMPILER_OPT_LEVEL": "-O3"},
        {"NEURON_CC_FLAGS": "--a=b c"},
    ]
    policies = [*map(from_environment, environments), from_environment({}, target="trn3")]
    keys = [key(call(self=X), policy) for policy in policies]
    assert len(set(keys)) == 5
    assert keys[0].endswith("_trn2_2_O1_--model-type_transformer_--auto-cast-none")
    assert keys[3].endswith("_--auto-cast-none_--a-b_c")
    assert Policy().suffix(Policy().opt_level_compile).startswith("trn2_2_O2_")


def test_a_collective_folds_no_layout() -> None:
    from shapeguard.neuron.sim.counting import Counter

    events: list[dict[str, object]] = []

    class Sink:
        def emit(self, event: object) -> None:
            events.append(dict(event))  # type: ignore[call-overload]

    import torch

    counter = Counter(Sink(), Policy())  # type: ignore[arg-type]
    counter.collective("allreduce", ([torch.ones(4, 8).t()],), groups="groups of 2 with stride 1 in 2")
    counter.collective("allreduce", ([torch.ones(8, 4)],), groups="groups of 2 with stride 1 in 2")
    assert [(event["kind"], event["op"]) for event in events] == [("eager", "contiguous"), ("collective", "allreduce")]


def test_a_collective_that_neuron_would_split_is_marked() -> None:
    import torch

    from shapeguard.neuron.sim.collectives import certainty_of

    small, large = (torch.empty(count, device="meta") for count in (2**27, 2**27 + 1))
    assert [certainty_of(([small],)), certainty_of(([small, large],))] == ["", "±"]


def test_a_collective_is_keyed_by_groups_and_reduction() -> None:
    made = [
        call("allreduce", **{"0": (X,), "replica_groups": Value(groups), "reduce_op": Value(reduction)})
        for groups in ("2", "4")
        for reduction in ("SUM", "MAX")
    ]
    assert len({key(each, Policy()) for each in made}) == 4


@pytest.mark.parametrize(
    ("source", "dtype", "ops", "is_bounced"),
    [
        ("float32", "float16", ["_to_copy"], False),
        ("float32", "float32", ["copy_"], False),
        ("float32", "float64", [], True),
        ("float64", "float64", [], False),
        ("bool", "bool", [], False),
        ("int64", "int32", [], True),
        ("int64", "float32", ["_to_copy"], True),
        ("int32", "float32", ["copy_"], False),
        ("float32", "bool", ["copy_"], False),
        ("bool", "float64", [], True),
    ],
)
def test_a_cast_compiles_these(source: str, dtype: str, ops: list[str], is_bounced: bool) -> None:
    found = cast(Spec((4,), source), dtype)
    assert [each.op for each in found.calls] == ops
    assert found.is_bounced == is_bounced


def test_a_copy_into_a_part_is_keyed_by_shape_not_by_place() -> None:
    target = [classify((4, 4), (16, 1), offset) for offset in (0, 8)]
    made = [into(Spec((4, 4), "float32"), Spec((4, 4), "float32", layout)) for layout in target]
    assert made[0] == made[1]
    assert (made[0].is_bounced, certainty(made[0].calls[0])) == (True, "±")


def test_arguments_by_value_that_2_14_may_key_otherwise_are_marked() -> None:
    assert certainty(call("add_.Tensor", self=X, alpha=Value("-0.1"))) == "±"
    assert certainty(call("add_.Tensor", self=X)) == ""
    assert certainty(call("_softmax", self=X, dim=Value("1"))) == ""


def test_every_table_names_operators_that_are_registered() -> None:
    assert not BY_VALUE.keys() - (REGISTERED | REGISTERED_BY_HAND)
    assert len(REGISTERED) > 300


def test_inputs_that_a_graph_does_not_read_bring_no_kernel() -> None:
    spread = Spec((4, 8), "float32", classify((4, 8), (0, 1), 0))
    assert materialised(call("ones_like", self=spread), Policy()) == []
    assert [each.op for each in materialised(call("neg", self=spread), Policy())] == ["contiguous"]


def test_a_list_with_numbers_runs_tensor_by_tensor_in_place_only() -> None:
    arguments = {"self": (X, X), "scalars": (TypeOf("float"), TypeOf("float"))}
    assert [each.op for each in parts(call("_foreach_div_.ScalarList", **arguments), Policy())] == ["div_.Tensor"] * 2
    assert [each.op for each in parts(call("_foreach_div.ScalarList", **arguments), Policy())] == [
        "_foreach_div.ScalarList"
    ]
