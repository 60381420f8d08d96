"""Random programs of 1 to 20 operators on the simulated device, beside a second, smaller idea of what a key holds.

Run as a program in the traced process: `random_programs.py EXAMPLES`; prints one JSON line with the keys of each program,
or ends with hypothesis' smallest counterexample.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_neuronx import _C, _device

LENGTHS = st.integers(2, 5)
DTYPES = ("float32", "float16", "bfloat16")
COUNTER = _device.claim().device.counter


@dataclass(frozen=True)
class Step:
    """One operator: what it takes from the pool of tensors, and a number that chooses its other arguments."""

    op: str
    first: int
    second: int
    number: int


@dataclass(frozen=True)
class Program:
    """Tensors to begin with (rows, columns, dtype), and operators; one that does not fit its tensors is left out."""

    tensors: tuple[tuple[int, int, str], ...]
    steps: tuple[Step, ...]


def layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What a consumer's key has of a tensor's layout: nothing, an order, a cut, a copy before, a trip to the host."""
    stride = tensor.stride()
    if tensor.is_contiguous():
        return ()
    if 0 in stride:
        return ("expanded", *stride)
    if stride == (1, tensor.shape[0]):
        return ("transposed",)
    if stride[1] == 1:
        return ("cut", stride[0], tensor.storage_offset() % stride[0])
    return ("host",)


class Ideas:
    """Keys as this file has them: sets of plain tuples, from running the program on the CPU."""

    def __init__(self) -> None:
        self.keys: list[tuple[Any, ...]] = []

    def note(self, op: str, *tensors: torch.Tensor, values: tuple[Any, ...] = ()) -> None:
        layouts = [layout(each) for each in tensors]
        for each, how in zip(tensors, layouts, strict=True):
            if how[:1] == ("expanded",):
                self.keys.append(("contiguous", tuple(each.shape), each.dtype, how))
        folded = [how if how[:1] in (("transposed",), ("cut",)) else () for how in layouts]
        specs = tuple((tuple(each.shape), each.dtype) for each in tensors)
        self.keys.append((op, specs, values, tuple(folded) if any(folded) else ()))


def run(program: Program, device: str, ideas: Ideas | None = None, value: float = 1.0) -> None:
    """Run a program; beside it, on the CPU, its ideas of keys are noted."""
    note = ideas.note if ideas is not None else lambda *_, **__: None
    pool = [torch.full((r, c), value, dtype=getattr(torch, dtype)).to(device) for r, c, dtype in program.tensors]
    for step in program.steps:
        a, b = pool[step.first % len(pool)], pool[step.second % len(pool)]
        made = OPERATORS[step.op](a, b, step.number, note, device)
        if made is not None:
            pool.append(made)


def unary(name: str) -> Any:
    def operator(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
        note(name, a)
        return getattr(torch, name)(a)

    return operator


def add(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    if a.shape != b.shape:
        return None
    if n == 2:
        note("add.Tensor", a, b)
        return a + b
    note("add.Tensor", a, b, values=(("alpha", n),))
    return torch.add(a, b, alpha=n)


def subtract_in_place(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    if a.shape != b.shape or 0 in a.stride() or a.dtype != b.dtype:
        return None
    note("sub_.Tensor", a, b)
    a.sub_(b)
    return None


def times_a_number(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    number = (2, 3, 2.0, 3.0)[n % 4]
    note("mul.Tensor", a, values=(type(number).__name__,))
    return a * number


def power(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    note("pow.Tensor_Scalar_out", a, values=(n,))
    return a**n


def softmax(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    note("_softmax", a, values=(n % 2,))
    return a.softmax(n % 2)


def total(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    note("sum.dim_IntList", a, values=(n % 2,))
    a.sum(n % 2)
    return None


def cat(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    if a.dtype != b.dtype or a.shape[1 - n % 2] != b.shape[1 - n % 2]:
        return None
    note("cat", a, b, values=(n % 2,))
    return torch.cat([a, b], n % 2)


def product(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    if a.dtype != b.dtype or a.shape[1] != b.shape[0]:
        return None
    note("mm", a, b)
    return torch.mm(a, b)


def cast(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    dtype = getattr(torch, DTYPES[n % 3])
    if dtype != a.dtype:
        note("_to_copy", a, values=(dtype,))
    return a.to(dtype)


def clone(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    note("copy_", a, values=(a.dtype,))
    return a.clone(memory_format=torch.contiguous_format)


def compare(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    note("gt.Scalar_out", a)
    a > n * 0.5  # noqa: B015
    return None


def full(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    note("full", values=(n, a.shape[1]))
    return torch.full((n, a.shape[1]), 0.5 * n, device=device)


def transpose(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    return a.t()


def columns(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    start = n % 2
    return a[:, start : start + 2] if a.shape[1] >= start + 2 else None


def rows(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    return a[1:] if a.shape[0] > 2 else None


def spread(a: Any, b: Any, n: int, note: Any, device: str) -> Any:
    row = a[n % a.shape[0]]
    return row.expand(3, row.shape[0]) if row.is_contiguous() else None


OPERATORS = {
    **{name: unary(name) for name in ("neg", "exp", "sqrt", "abs", "sigmoid")},
    "add": add,
    "subtract in place": subtract_in_place,
    "times a number": times_a_number,
    "power": power,
    "softmax": softmax,
    "total": total,
    "cat": cat,
    "product": product,
    "cast": cast,
    "clone": clone,
    "compare": compare,
    "full": full,
    "transpose": transpose,
    "columns": columns,
    "rows": rows,
    "spread": spread,
}
TENSORS = st.tuples(LENGTHS, LENGTHS, st.sampled_from(DTYPES))
STEPS = st.builds(
    Step,
    op=st.sampled_from(sorted(OPERATORS)),
    first=st.integers(0, 9),
    second=st.integers(0, 9),
    number=st.integers(2, 4),
)
PROGRAMS = st.builds(
    Program,
    tensors=st.lists(TENSORS, min_size=1, max_size=3).map(tuple),
    steps=st.lists(STEPS, min_size=1, max_size=20).map(tuple),
)


def changed(program: Program, draw: Any) -> Program:
    """Change one shape, dtype or argument of a program."""
    place = draw(st.integers(0, len(program.tensors) + len(program.steps) - 1))
    if place < len(program.tensors):
        tensors = list(program.tensors)
        tensors[place] = draw(TENSORS)
        return replace(program, tensors=tuple(tensors))
    steps = list(program.steps)
    at = place - len(program.tensors)
    steps[at] = replace(steps[at], number=draw(st.integers(2, 4)))
    return replace(program, steps=tuple(steps))


class Seen:
    """Operators whose keys were added since it was last asked."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        emit = COUNTER.sink.emit

        def note(event: Any) -> None:
            if event["type"] == "compile":
                self.ops.append(event["op"])
            emit(event)

        COUNTER.sink.emit = note

    def take(self) -> Counter[str]:
        taken, self.ops = Counter(self.ops), []
        return taken


def expected(new: list[tuple[Any, ...]], old: list[tuple[Any, ...]]) -> Counter[str]:
    return Counter(key[0] for key in set(new) - set(old))


def main() -> None:
    seen, keys = Seen(), []

    @settings(
        max_examples=int(sys.argv[1]),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(PROGRAMS, st.data())
    def hold(program: Program, data: Any) -> None:
        _C._clear_compilation_cache()
        seen.take()
        ideas, others = Ideas(), Ideas()
        run(program, "cpu", ideas)
        run(program, "neuron")
        assert seen.take() == expected(ideas.keys, []), "the first run"
        keys.append(sorted(_C._get_all_cache_keys()))
        run(program, "neuron")
        assert not seen.take(), "running twice"
        run(program, "neuron:0", value=0.25)
        assert not seen.take(), "other values, and an index"
        other = changed(program, data.draw)
        run(other, "cpu", others)
        run(other, "neuron")
        assert seen.take() == expected(others.keys, ideas.keys), "one change"

    hold()
    print(json.dumps(keys))


if __name__ == "__main__":
    main()
