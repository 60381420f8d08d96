"""What a user asks for: a model, shapes and other attributes of a graph, as written on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from shapeguard.core.errors import UsageError
from shapeguard.core.graphs import GraphInput, GraphRecord, ModelKey

_SIZES = re.compile(r"\d+(?:[x×*]\d+)*")
_INPUT = re.compile(r"(?:(?P<path>[^=\s]+)=)?(?P<sizes>\d+(?:[x×*]\d+)*|scalar)(?::(?P<dtype>\w+))?")
_DTYPES = {
    "bf16": "bfloat16",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
}
_DTYPES |= {
    f"{short}{bits}": f"{whole}{bits}"
    for short, whole, widths in (
        ("f", "float", (16, 32, 64)),
        ("fp", "float", (16, 32, 64)),
        ("i", "int", (8, 16, 32, 64)),
        ("u", "uint", (8, 16, 32, 64)),
    )
    for bits in widths
}

DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a graph is asked to have; an empty part asks for nothing."""

    model: str = ""
    """A model's name, `name@configuration`, or a pattern with `*`."""
    shapes: tuple[GraphInput, ...] = ()
    """Inputs; an empty path or dtype is any."""
    batch: int | None = None
    length: int | None = None
    dtype: str = ""
    tp: int | None = None
    target: str = ""
    kind: str = ""
    device: str = ""


def shapes(text: str) -> tuple[GraphInput, ...]:
    """Read `8x512`, `input_ids=8x512:int64`, or several with commas or spaces between; `UsageError` for others."""
    found = []
    for part in re.split(r"[,\s]+", text.strip()):
        match = _INPUT.fullmatch(part)
        if match is None:
            raise UsageError(f"{part!r} is no shape", hint="write 8x512, or input_ids=8x512:int64")
        sizes = match["sizes"]
        shape = () if sizes == "scalar" else tuple(int(size) for size in re.split("[x×*]", sizes))
        found.append(GraphInput(path=match["path"] or "", shape=shape, dtype=dtype(match["dtype"] or "")))
    return tuple(found)


def dtype(text: str) -> str:
    """Give a dtype's whole name; `UsageError` where torch has none of that name."""
    text = text.removeprefix("torch.")
    whole = _DTYPES.get(text, text)
    if whole and whole not in DTYPES:
        close = get_close_matches(whole, DTYPES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "write it as torch does: int64, bfloat16"
        raise UsageError(f"{text!r} is no dtype", hint=hint)
    return whole


def model_prefix(pattern: str) -> str:
    """Give the part of a pattern that every match begins with."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0]


def is_model(pattern: str, model: ModelKey) -> bool:
    """Whether a pattern means the model: its name, or its name and configuration."""
    if not pattern:
        return True
    return fnmatchcase(model.name, pattern) or fnmatchcase(str(model), pattern) or _begins(pattern, model)


def _begins(pattern: str, model: ModelKey) -> bool:
    name, mark, config = pattern.partition("@")
    return bool(mark) and fnmatchcase(model.name, name) and bool(config) and model.config.startswith(config)


def model_of(text: str) -> ModelKey:
    """Read `NAME@CONFIGURATION`."""
    name, _, config = text.partition("@")
    return ModelKey(name=name, config=config)


def demand_model(pattern: str, known: Iterable[str], *, where: str) -> None:
    """Raise a `UsageError` where a pattern means none of the models that are known."""
    models = {text: model_of(text) for text in known}
    if not pattern or any(is_model(pattern, model) for model in models.values()):
        return
    close = get_close_matches(pattern.partition("@")[0], sorted({model.name for model in models.values()}), n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`shapeguard cache status` lists the models recorded here"
    raise UsageError(f"there is no model {pattern!r} {where}", hint=hint)


def matches(record: GraphRecord, wanted: Wanted) -> bool:
    """Whether a record has all that is asked for."""
    return (
        is_model(wanted.model, record.model)
        and wanted.target in ("", record.key.target)
        and wanted.device in ("", record.key.device)
        and wanted.kind in ("", record.kind)
        and wanted.tp in (None, record.tp)
        and _has(wanted.batch, {each.shape[0] for each in record.inputs if len(each.shape) > 1})
        and _has(wanted.length, {each.shape[1] for each in record.inputs if len(each.shape) > 1})
        and (not wanted.dtype or wanted.dtype in {each.dtype for each in record.inputs} | {v for _, v in record.modes})
        and all(any(_fits(one, asked) for one in record.inputs) for asked in wanted.shapes)
    )


def _has(number: int | None, found: set[int]) -> bool:
    return number is None or number in found


def _fits(one: GraphInput, asked: GraphInput) -> bool:
    return (
        asked.path in ("", one.path, one.path.rsplit(".", 1)[-1])
        and asked.dtype in ("", one.dtype)
        and asked.shape == one.shape
    )


def select(records: Iterable[GraphRecord], wanted: Wanted) -> list[GraphRecord]:
    """Give the records that have what is asked for, in an order that is always the same."""
    found = [record for record in records if matches(record, wanted)]
    return sorted(found, key=order)


def order(record: GraphRecord) -> tuple[object, ...]:
    """Give what records are listed by."""
    shape = tuple((each.path, each.shape, each.dtype) for each in record.inputs)
    return (str(record.model), record.key.target, record.key.device, shape, record.kind, record.name, record.key.id)
