"""What is said of a graph that has the lock's inputs and yet is another program."""

from __future__ import annotations

from dataclasses import replace

from shapeguard.checks.words import other_program
from shapeguard.lock.values import LockedGraph

OLD = LockedGraph(kind="forward", key="0" * 8, dtypes=("float32",), parameters="2 tensors, 60 values", nodes=7)
INSIDE = "len(self._modules['2'].shape)=1"


def test_what_differs_is_named():
    assert other_program(OLD, replace(OLD, parameters="2 tensors, 90 values")) == (
        "the same inputs, another program: its parameters: "
        "2 tensors, 60 values → 2 tensors, 90 values, against the lock"
    )
    assert other_program(OLD, replace(OLD, dtypes=("bool", "float32"), nodes=9)) == (
        "the same inputs, another program: dtype bool is new in it; 7 → 9 operators, against the lock"
    )
    assert "scale: 1 → 2" in other_program(replace(OLD, constants=("scale=1",)), replace(OLD, constants=("scale=2",)))


def test_a_value_of_a_module_that_only_one_has_is_no_reason():
    assert other_program(OLD, replace(OLD, constants=(INSIDE,), nodes=9)) == (
        "the same inputs, another program: 7 → 9 operators, against the lock"
    )
    assert other_program(OLD, replace(OLD, constants=(INSIDE,))) == (
        "the same inputs and 7 operators, of which one or a setting of one is another, against the lock"
    )
