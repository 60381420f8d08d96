"""Which layouts only follow from the shape of their input."""

from __future__ import annotations

import pytest

from shapeguard.runs.layouts import follows
from shapeguard.runs.values import Input

CASES = {
    "a slice of a longer row": ((4, 14), "slice (4, 15, 1, 0, 14)", (4, 20), "slice (4, 21, 1, 0, 20)", True),
    "of fewer rows": ((4, 14), "slice (4, 15, 1, 0, 14)", (2, 14), "slice (2, 15, 1, 0, 14)", True),
    "cut elsewhere": ((4, 14), "slice (4, 15, 1, 0, 14)", (4, 13), "slice (4, 15, 1, 1, 14)", False),
    "more cut off": ((4, 14), "slice (4, 15, 1, 0, 14)", (4, 13), "slice (4, 15, 1, 0, 13)", False),
    "the same shape": ((4, 14), "slice (4, 15, 1, 0, 14)", (4, 14), "slice (4, 16, 1, 0, 14)", False),
    "no slice before": ((4, 14), "", (4, 15), "slice (4, 16, 1, 0, 15)", False),
    "transposed now": ((4, 14), "", (4, 15), "permuted (1, 0)", False),
    "one row expanded to more": ((4, 14), "expanded (1, 14)", (4, 20), "expanded (1, 20)", True),
    "another axis expanded": ((4, 14), "expanded (1, 14)", (4, 20), "expanded (4, 1)", False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_layout_follows_from_the_shape(name: str) -> None:
    shape, layout, new_shape, new_layout, wanted = CASES[name]
    old = Input(path="x", shape=shape, dtype="torch.int64", layout=layout)
    new = Input(path="x", shape=new_shape, dtype="torch.int64", layout=new_layout)
    assert follows(old, new) is wanted
