"""What Dynamo's guards say, as a reader would say it."""

from __future__ import annotations

import pytest

from shapeguard.runs.guards import from_guard


@pytest.mark.parametrize(
    ("guard", "kind", "path"),
    [
        ("0/1: tensor 'kwargs['input_ids']' size mismatch at index 1. expected 12, actual 20", "shape", "input_ids"),
        ("0/0: tensor 'args[0]' size mismatch at index 0. expected 4, actual 2", "shape", "args[0]"),
        (
            "0/0: tensor 'cache.layers[0].keys' size mismatch at index 2. expected 19, actual 23",
            "shape",
            "cache.layers[0].keys",
        ),
        ("0/0: step == 3", "value", "step"),
        ("0/0: len(group) == 4", "value", "group"),
        ("0/0: self.config.problem_type is None", "guard", "0/0: self.config.problem_type is None"),
    ],
)
def test_a_guard_names_what_changed(guard: str, kind: str, path: str) -> None:
    position = from_guard(guard).at
    assert (position.kind, position.path) == (kind, path)
