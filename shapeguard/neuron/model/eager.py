"""The key of an eager operator (facts, section 1.1): which calls share one graph.

Values only: a tensor is its shape, dtype and layout. The simulated device and, on hardware, the adapter fill these in.
"""

from __future__ import annotations

from dataclasses import dataclass

from shapeguard.neuron.model.layouts import Kind, Layout
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.model.tables import UNCERTAIN_BY_VALUE, UNUSED


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor as the model sees it; `dtype` is the original one, before 64-bit values are narrowed."""

    shape: tuple[int, ...]
    dtype: str
    layout: Layout | None = None
    storage_bytes: int = 0
    """Of a tensor that is not contiguous: what a round trip through the host moves."""

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class TypeOf:
    """An argument of which only the type is in the key: its value is uploaded at run time."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Value:
    """An argument whose value is in the key."""

    text: str

    def __str__(self) -> str:
        return f"={self.text}"


Argument = Spec | TypeOf | Value | tuple["Argument", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a registered operator."""

    op: str
    """Overload without `aten::`, as Neuron registers it ("eq.Tensor_out" for `x == y`)."""
    arguments: tuple[tuple[str, Argument], ...]
    """Name and content of each argument that was passed, in order; `out` last."""
    certainty: str = ""
    """"±" where the count rests on a guess about Neuron."""


def tensors(call: Call) -> list[tuple[str, Spec]]:
    """Give the input tensors of a call with their paths."""
    found: list[tuple[str, Spec]] = []

    def visit(path: str, argument: Argument) -> None:
        if isinstance(argument, Spec):
            found.append((path, argument))
        elif isinstance(argument, tuple):
            for index, item in enumerate(argument):
                visit(f"{path}[{index}]", item)

    for name, argument in call.arguments:
        if name != "out":
            visit(name, argument)
    return found


def constants(call: Call) -> list[tuple[str, str]]:
    """Give the arguments keyed by value."""
    return [(name, argument.text) for name, argument in call.arguments if isinstance(argument, Value)]


def key(call: Call, policy: Policy) -> str:
    """Give the key of the call's own graph: one string, one graph."""
    body = ",".join(f"{name}:{_text(argument)}" for name, argument in call.arguments)
    text = f"aten::{call.op}({body})"
    if policy.is_sync:
        return text
    return f"{_prologue(call, policy)}{text}_{policy.suffix(policy.opt_level_eager)}"


def _text(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ";".join(_text(item) for item in argument) + "]"
    return str(argument)


def used(call: Call) -> list[tuple[str, Spec]]:
    """Give the inputs that the graph reads; others are pruned from it, whatever their layout, but stay in the key."""
    unused = UNUSED.get(call.op)
    return tensors(call) if unused is None else [(path, spec) for path, spec in tensors(call) if path not in unused]


def certainty(call: Call) -> str:
    """Give "±" where the count of a call rests on a guess, or on what may differ in 2.14."""
    if any(spec.layout is not None and spec.layout.is_guess for _, spec in used(call)):
        return "±"
    if call.certainty or call.op not in UNCERTAIN_BY_VALUE:
        return call.certainty
    names = UNCERTAIN_BY_VALUE[call.op]
    return "±" if any(name in names for name, argument in call.arguments if isinstance(argument, Value)) else ""


def _prologue(call: Call, policy: Policy) -> str:
    """Give the part for layouts that are folded into the consumer; all inputs appear once one of them is folded."""
    inputs = used(call)
    if not any(is_folded(spec.layout, policy) for _, spec in inputs):
        return ""
    parts = (str(spec.layout) if is_folded(spec.layout, policy) else "none" for _, spec in inputs)
    return f"{'|'.join(parts)}_"


def is_folded(layout: Layout | None, policy: Policy) -> bool:
    """Tell whether the consumer takes the layout into its own graph."""
    return layout is not None and policy.folds_layouts and layout.kind in (Kind.PERMUTED, Kind.SLICE)


def materialised(call: Call, policy: Policy) -> list[Call]:
    """Give the `aten::contiguous` kernels that run before the call, one for each input that isn't folded."""
    calls = []
    for _, spec in used(call):
        layout = spec.layout
        if layout is not None and layout.kind is not Kind.STRIDED and not is_folded(layout, policy):
            calls.append(contiguous(spec))
    return calls


def bounced(call: Call) -> list[Spec]:
    """Give the inputs of which the whole storage takes a round trip through the host before the call."""
    return [spec for _, spec in used(call) if spec.layout is not None and spec.layout.kind is Kind.STRIDED]


def contiguous(spec: Spec) -> Call:
    """Give the kernel that makes one input contiguous, keyed by its base and what was done to it."""
    assert spec.layout is not None
    base = Spec(spec.shape, spec.dtype)
    layout = ("layout", Value(str(spec.layout)))
    return Call(op="contiguous", arguments=(("self", base), layout), certainty="±" if spec.layout.is_guess else "")
