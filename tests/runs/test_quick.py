"""Compile lines are read the same on the quick way and on the tolerant one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shapeguard.runs.lines import Reader
from shapeguard.runs.quick import compile_line
from shapeguard.runs.values import Compile

SITE = {"file": "train.py", "line": 9, "function": "main"}
PLAIN: dict[str, Any] = {"type": "compile", "n": 3, "kind": "region", "outcome": "compiled", "key": "k", "step": 4}
LINES: dict[str, dict[str, Any]] = {
    "as little as there is": PLAIN,
    "a region": {
        **PLAIN,
        "name": "model_1",
        "region": 2,
        "code": {**SITE, "line": 5},
        "instance": 7,
        "inputs": [
            {"path": "ids", "shape": [4, 9], "dtype": "torch.int64", "layout": "", "device": "neuron:0"},
            {"path": "mask", "shape": [4, "s0"], "dtype": "bool", "layout": "expanded (1, 9)", "requires_grad": False},
        ],
        "constants": [{"path": "n", "value": "3"}],
        "guard": "n == 2",
        "modes": {"grad": True, "inference": False, "training": None, "autocast": "off"},
        "model": "LlamaForCausalLM",
        "config": "abc",
        "tp": 2,
        "nodes": 85,
        "operators": {"mm": 4, "none": 0},
        "dtypes": ["float32", "int64"],
        "neff": "0" * 32,
        "seconds": 1.5,
        "collectives": 1,
        "outline": "o",
        "exchange": "e",
        "limit": 8,
        "certainty": "±",
        "phase": "train",
        "phase_step": 3,
        "site": SITE,
        "stack": [SITE],
        "owners": [{"role": "move", "path": "ids", **SITE}, {"role": "collate", "file": ""}],
    },
    "an operator": {**PLAIN, "kind": "eager", "op": "add.Tensor", "phase": "eval", "inputs": [], "owners": []},
    "nothing where there may be something": {**PLAIN, "site": None, "code": None, "seconds": None, "phase_step": None},
}


def read(*lines: dict[str, Any]) -> list[Compile]:
    step = {"type": "step", "step": 4, "phase": "eval", "phase_step": 2}
    found = Reader().process([json.dumps(line).encode() for line in (step, *lines)])
    assert not found.notes
    return found.compiles


@pytest.mark.parametrize("name", LINES)
def test_both_ways_give_the_same(name: str) -> None:
    line = LINES[name]
    # A number as text is read by the tolerant way alone.
    slow = {**line, "n": str(line["n"])}
    assert compile_line(json.dumps(line).encode()) is not None
    assert compile_line(json.dumps(slow).encode()) is None
    (quick, again, tolerant) = read(line, line, slow)
    assert quick == again == tolerant


def test_a_line_with_parts_of_another_kind_is_told_and_left_out() -> None:
    lines = [json.dumps({**PLAIN, "inputs": value}).encode() for value in (["text"], 7)]
    found = Reader().process(lines)
    assert not found.compiles
    assert [note.message for note in found.notes] == ["a line of type 'compile' cannot be read"] * 2
