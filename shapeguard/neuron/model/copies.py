"""Copies and casts on the device (facts, section 1.4): which compile, and which go through the host."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shapeguard.neuron.model.eager import Call, Spec, Value
from shapeguard.neuron.model.layouts import Kind, Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What one copy or cast runs."""

    calls: tuple[Call, ...] = ()
    """Kernels of the device, in order."""
    is_bounced: bool = False
    """Whether the data goes to the host and back."""


def cast(source: Spec, dtype: str, *, op: str = "copy_") -> Copy:
    """Give what makes a tensor of `dtype` out of another one, which may be the same dtype: a clone."""
    pair = {source.dtype, dtype}
    if source.dtype == dtype:
        return _same(source)
    if "float64" in pair or pair == {"int32", "int64"}:
        return Copy(is_bounced=True)
    if "int32" in pair or "bool" in pair:
        return Copy(calls=(_copy("copy_", source, dtype, is_sure="int64" not in pair),))
    # Read for int64 to float32 only: it comes back from the host as int32 and is cast on the device.
    is_sure = "int64" not in pair or (source.dtype == "int64" and dtype == "float32")
    return Copy(calls=(_copy("_to_copy", source, dtype, is_sure=is_sure),), is_bounced="int64" in pair)


def _same(source: Spec) -> Copy:
    if source.dtype in ("bool", "float64"):
        return Copy()
    if source.dtype == "int64":
        # Uncertain: at most one kernel of the narrow dtype, which it shares with true int32.
        return Copy(calls=(_copy("copy_", Spec(source.shape, "int32", source.layout), "int32", is_sure=False),))
    return Copy(calls=(_copy("copy_", source, source.dtype),))


def _copy(op: str, source: Spec, dtype: str, *, is_sure: bool = True) -> Call:
    return Call(op=op, arguments=(("self", source), ("dtype", Value(dtype))), certainty="" if is_sure else "±")


def into(source: Spec, target: Spec) -> Copy:
    """Give what `target.copy_(source)` runs."""
    before: tuple[Call, ...] = ()
    if source.shape != target.shape:
        # `expand(...).contiguous()` comes first.
        spread = Layout(Kind.EXPANDED, source.shape)
        arguments = (("self", Spec(target.shape, source.dtype)), ("layout", Value(str(spread))))
        before = (Call(op="contiguous", arguments=arguments),)
        source = Spec(target.shape, source.dtype)
    if target.layout is None:
        found = cast(source, target.dtype)
        return Copy(calls=(*before, *found.calls), is_bounced=found.is_bounced)
    if source.dtype != target.dtype:
        found = cast(source, target.dtype)
        before, source = (*before, *found.calls), Spec(target.shape, target.dtype)
    if target.layout.kind is Kind.PERMUTED:
        return Copy(calls=(*before, _transposed(source, str(target.layout))))
    # I: the same kernel is tried, its check of sizes fails, and the data goes through the host.
    return Copy(calls=(*before, _transposed(source, "", certainty="±")), is_bounced=True)


def onto_itself(copy: Copy) -> Copy:
    """Give the same as a guess: one of two implementations of `x.copy_(x)` does nothing, which one runs is unknown."""
    return replace(copy, calls=tuple(replace(call, certainty="±") for call in copy.calls))


def _transposed(source: Spec, layout: str, certainty: str = "") -> Call:
    order = (("layout", Value(layout)),) if layout else ()
    return Call(op="noncontiguous_copy_transpose", arguments=(("self", source), *order), certainty=certainty)
