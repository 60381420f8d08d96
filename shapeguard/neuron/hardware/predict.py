"""What the compile model says of one call under way, and the description of what was really handed to the compiler.

The number of compiles comes from TorchNeuron; the words for them come from here: the model's own where it expected what
came (so that simulated and real runs have the same keys), else what the handed tensors say.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from shapeguard.neuron.hardware.calls import Running
from shapeguard.neuron.model import copies, eager
from shapeguard.neuron.model.eager import Argument, Call, Spec, Value
from shapeguard.neuron.model.extras import masked_index, masked_put, parts
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.model.tables import NEVER_CUT_SHORT, REGISTERED, REGISTERED_BY_HAND
from shapeguard.neuron.sim.counting import Plan, describe, in_place_of_empty, is_cut_short
from shapeguard.neuron.sim.kernels import written
from shapeguard.neuron.sim.specs import spec_of
from shapeguard.neuron.sim.torch_private import overload

Tensor = torch.Tensor
_NARROWED = {"int64": "int32", "uint64": "uint32", "float64": "float32"}
_DEVICE = "neuron"
_KNOWN = REGISTERED | REGISTERED_BY_HAND
_MASKS = ("bool", "uint8")
_LEFT_OUT = {"_index_put_impl_": (False, False)}
"""Arguments that torch leaves out as equal to their defaults, and that the simulated device's key has."""


@functools.cache
def plan_of(name: str) -> Plan | None:
    """Give what is known of an overload; None for a name that this torch has none for."""
    op = overload(name)
    return Plan(op, name) if op is not None else None


def predict(
    running: Running, op: str, outputs: Sequence[Any], policy: Policy, *, inputs: Sequence[Any] = ()
) -> list[Call]:
    """Give what the model expects to be compiled for a call under way, of which a kernel `op` has come."""
    name, args, kwargs = running.name, running.args, dict(running.kwargs)
    args = (*args, *_LEFT_OUT.get(name, ())[max(0, len(args) - 3) :])
    if name in ("copy_", "_to_copy", "_copy_from", "clone", "contiguous"):
        return _with_layouts(_copies(running), policy)
    if (form := out_form(name)) and form != name:
        name, out = form, (args[0] if name.partition(".")[0].endswith("_") else _widened(_first(outputs), args))
    else:
        out = _out(name, args, kwargs)
    plan = plan_of(name)
    if plan is None:
        return []
    call = describe(plan, args, kwargs, out)
    if name.startswith("masked_select") and (found := _first(outputs)) is not None:
        call = replace(call, arguments=(*call.arguments, ("count", Value(str(found.numel())))))
    result = list(outputs)
    if name not in NEVER_CUT_SHORT and is_cut_short(args, result):
        found = in_place_of_empty(name, result)
        return [found] if found else []
    # The rows that a mask stands for are the second input of the operator, and the only one of what checks them.
    rows = inputs[1:2] if op == name else inputs[:1]
    calls = _masked(call, args, rows, result) if _has_mask(call) else [call]
    return [*eager.materialised(call, policy), *[part for each in calls for part in parts(each, policy)]]


def out_form(name: str) -> str:
    """Give the registered form that a structured operator arrives in, where its own name is not registered."""
    if name in _KNOWN:
        return name
    base, _, variant = name.partition(".")
    ends = ("out", f"{variant}_out") if variant else ("out",)
    return next((form for end in ends if (form := f"{base.rstrip('_')}.{end}") in _KNOWN), "")


def _has_mask(call: Call) -> bool:
    indices = dict(call.arguments).get("indices")
    return isinstance(indices, tuple) and any(isinstance(i, Spec) and i.dtype in _MASKS for i in indices)


def _with_layouts(calls: Sequence[Call], policy: Policy) -> list[Call]:
    return [each for call in calls for each in (*eager.materialised(call, policy), call)]


def _copies(running: Running) -> Sequence[Call]:
    tensors = [value for value in running.args if isinstance(value, Tensor)]
    if not tensors:
        return ()
    is_into = running.name == "copy_" and len(tensors) > 1
    source = tensors[1] if is_into else tensors[0]
    wanted = tensors[0].device if is_into else torch.device(running.kwargs.get("device") or source.device)
    layout = [eager.contiguous(spec_of(source))] if not source.is_contiguous() else []
    if source.device.type != _DEVICE or wanted.type != _DEVICE or running.name == "contiguous":
        # From the host nothing is compiled; to the host what makes it contiguous.
        return layout if source.device.type == _DEVICE else ()
    if is_into:
        return copies.into(spec_of(source), spec_of(tensors[0])).calls
    # Not what was handed over: 64-bit values are narrowed there.
    dtype = running.kwargs.get("dtype") or source.dtype
    return [*layout, *copies.cast(spec_of(source), str(dtype).removeprefix("torch.")).calls]


def _masked(call: Call, args: tuple[Any, ...], rows: Sequence[Any], result: Sequence[Any]) -> list[Call]:
    """Give what a mask as an index runs in place of the call.

    How many Trues it has is seen in what is handed over, else in the result; where in neither, only what does not
    depend on it is given.
    """
    arguments = dict(call.arguments)
    indices, own = arguments["indices"], arguments["self"]
    assert isinstance(indices, tuple) and isinstance(own, Spec)
    masks = [each if isinstance(each, Spec) else None for each in indices]
    count = int(rows[0].numel()) if rows else -1
    if call.op == "index.Tensor":
        place = next(place for place, each in enumerate(masks) if each is not None)
        shape = tuple(getattr(_first(result), "shape", ()))
        count = count if count >= 0 or len(shape) <= place else shape[place]
        *before, last = masked_index(own, masks, max(count, 0))
        # Of an empty result only the mask's own kernel runs.
        return [*before, last] if count > 0 else before
    is_one = len(args) > 2 and isinstance(args[2], Tensor) and args[2].numel() == 1
    *before, last = masked_put(call, max(count, 0), is_one_value=is_one)
    return [*before, last] if is_one or count >= 0 else before


def matching(predicted: Sequence[Call], op: str, inputs: Sequence[Any]) -> Call | None:
    """Find the call that the model expected among those that came: the same kernel on tensors of these shapes."""
    shapes = [tuple(each.shape) for each in inputs if isinstance(each, Tensor)]
    same = [call for call in predicted if call.op == op]
    exact = [call for call in same if [spec.shape for _, spec in eager.used(call)] == shapes]
    if exact:
        return next((call for call in exact if _same_types(call, inputs)), exact[0])
    # Inputs that the graph does not read are not handed over.
    return next((call for call in same if _contains([s.shape for _, s in eager.tensors(call)], shapes)), None)


def _same_types(call: Call, inputs: Sequence[Any]) -> bool:
    wanted = [spec.dtype for _, spec in eager.used(call)]
    given = [str(each.dtype).removeprefix("torch.") for each in inputs if isinstance(each, Tensor)]
    return all(w == g or _NARROWED.get(w) == g for w, g in zip(wanted, given, strict=False))


def _contains(whole: list[tuple[int, ...]], part: list[tuple[int, ...]]) -> bool:
    rest = iter(whole)
    return bool(part) and all(any(each == other for other in rest) for each in part)


def as_submitted(op: str, inputs: Sequence[Any], outputs: Sequence[Any], running: Running | None) -> Call:
    """Describe a kernel that the model did not expect, from the tensors it got and the call it runs for."""
    specs = [spec_of(each) for each in inputs if isinstance(each, Tensor)]
    values: list[tuple[str, Argument]] = []
    if running is not None and running.name == op and (plan := plan_of(op)) is not None:
        known = describe(plan, running.args, running.kwargs, None)
        values = [(name, argument) for name, argument in known.arguments if isinstance(argument, Value)]
    if op == "contiguous" and specs and specs[0].layout is not None:
        return eager.contiguous(specs[0])
    if op in ("copy_", "_to_copy") and specs:
        dtype = str(getattr(_first(outputs), "dtype", specs[0].dtype)).removeprefix("torch.")
        return Call(op=op, arguments=(("self", specs[0]), ("dtype", Value(dtype))))
    arguments: list[tuple[str, Argument]] = list(zip(_paths(op, len(specs)), specs, strict=False))
    if op.endswith("out") and isinstance(out := _first(outputs), Tensor):
        values.append(("out", Spec(tuple(out.shape), str(out.dtype).removeprefix("torch."))))
    return Call(op=op, arguments=(*arguments, *values))


def _paths(op: str, count: int) -> list[str]:
    """Name the tensors that a kernel got, after the operator's arguments; a list takes what is left."""
    found = overload(op)
    names: list[str] = []
    for argument in found._schema.arguments if found is not None else ():
        kind = str(argument.type)
        if "List[" in kind and "Tensor" in kind:
            names += [f"{argument.name}[{place}]" for place in range(count - len(names))]
        elif "Tensor" in kind and not argument.kwarg_only:
            names.append(argument.name)
    return [*names, *[str(place) for place in range(len(names), count)]][:count]


def _out(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """Give the tensor that the key has as `out`, and take what is written out of the keywords."""
    op = overload(name)
    names = written(op) if op is not None else []
    outs = [a.name for a in op._schema.arguments if a.name in names and a.kwarg_only] if op is not None else []
    given = [kwargs.pop(each) for each in outs if each in kwargs]
    if outs:
        return given[0] if len(given) == 1 and isinstance(given[0], Tensor) else None
    if op is not None and names and op._schema.returns and isinstance(args[0], Tensor):
        return args[0]
    return None


def _widened(out: Any, args: tuple[Any, ...]) -> Any:
    """Give a result with its dtype before 64-bit values were narrowed, which is the one in the key."""
    first = _first(args)
    if not isinstance(out, Tensor) or first is None:
        return out
    ours, its = (str(each.dtype).removeprefix("torch.") for each in (first, out))
    return torch.empty(out.shape, dtype=first.dtype, device="meta") if _NARROWED.get(ours) == its else out


def _first(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values
    return next((each for each in values or () if isinstance(each, Tensor)), None)
