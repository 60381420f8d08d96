"""The definition of buckets that everything shares: a list of lengths, or the file `buckets.toml`."""

from __future__ import annotations

import operator
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path

from shapeguard.core.errors import UsageError

SCHEMA = 1
Source = Iterable[int] | Mapping[int, int] | str | PathLike[str]
"""Lengths, lengths with the rows of a batch, "128,512", or the path of a `buckets.toml`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One allowed length."""

    length: int
    batch_size: int | None = None
    """Rows of a batch of this length, where the file says so."""


def read_buckets(source: Source) -> tuple[Bucket, ...]:
    """Give buckets in ascending order, from lengths, from text like "128,512" or from a `buckets.toml`."""
    if isinstance(source, (str, PathLike)):
        text = str(source)
        listed = _of_list(text) if isinstance(source, str) else None
        return _checked(listed or _of_file(Path(text)), text)
    lengths = [_whole(length) for length in source]
    batches = {_whole(key): _whole(value) for key, value in source.items()} if isinstance(source, Mapping) else {}
    buckets = [Bucket(length=length, batch_size=batches.get(length)) for length in lengths]
    return _checked(buckets, "the list of buckets")


def _whole(number: object) -> int:
    """Take every kind of whole number, also those of NumPy and torch."""
    try:
        if isinstance(number, bool):
            raise TypeError
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{number!r} is no bucket", hint="buckets are whole numbers of tokens") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a `buckets.toml` says, or a list."""

    buckets: tuple[Bucket, ...]
    use: str = ""
    """`infer` or `train`, where the file says so."""
    align: int | None = None


def read_definition(source: str) -> Definition:
    """Give all that a `buckets.toml` says, or the lengths of a list."""
    buckets = read_buckets(source)
    if _of_list(source) is not None:
        return Definition(buckets=buckets)
    table = _table(Path(source))
    use, align = table.get("for", ""), table.get("align")
    if use not in ("", "infer", "train"):
        raise UsageError(f"{source}: for = {use!r} is neither infer nor train", hint='write for = "train"')
    if align is not None and (isinstance(align, bool) or not isinstance(align, int) or align < 1):
        raise UsageError(f"{source}: align must be a whole number from 1, not {align!r}")
    return Definition(buckets=buckets, use=use, align=align)


def lengths_of(source: Source) -> tuple[int, ...]:
    """Give the lengths alone."""
    return tuple(bucket.length for bucket in read_buckets(source))


def smallest(lengths: Sequence[int], wanted: int) -> int | None:
    """Give the smallest bucket that holds a length, or None where it fits none; `lengths` ascend."""
    index = bisect_left(lengths, wanted)
    return lengths[index] if index < len(lengths) else None


def _of_list(text: str) -> list[Bucket] | None:
    words = text.replace(",", " ").split()
    if not words or not all(word.isascii() and word.lstrip("-").isdigit() and len(word) <= 15 for word in words):
        return None
    return [Bucket(length=int(word)) for word in words]


_HINT = "`shapeguard plan --write toml=FILE` writes one; a list is written 128,512"


def _table(path: Path) -> Mapping[str, object]:
    hint = _HINT
    try:
        with path.open("rb") as stream:
            table = tomllib.load(stream)
    except OSError as error:
        raise UsageError(f"{str(path)!r} is no list of buckets and no file: {error.strerror}", hint=hint) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: this is no TOML: {error}", hint=hint) from error
    if table.get("schema") != SCHEMA:
        raise UsageError(f"{path}: the schema {table.get('schema')!r} is not {SCHEMA}", hint=hint)
    return table


def _of_file(path: Path) -> list[Bucket]:
    rows = _table(path).get("bucket")
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{path}: there is no [[bucket]]", hint=_HINT)
    return [_row(row, f"{path}: bucket {number}") for number, row in enumerate(rows, 1)]


def _row(row: object, where: str) -> Bucket:
    values = row if isinstance(row, dict) else {}
    found = {}
    for name, value in (("length", values.get("length")), ("batch-size", values.get("batch-size"))):
        is_missing = value is None and name != "length"
        if not is_missing and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise UsageError(f"{where}: {name} must be a whole number from 1, not {value!r}")
        found[name] = value
    return Bucket(length=found["length"], batch_size=found["batch-size"])  # type: ignore[arg-type]


def _checked(buckets: Sequence[Bucket], where: str) -> tuple[Bucket, ...]:
    if not buckets:
        raise UsageError(f"{where} is empty", hint="give at least one length")
    for bucket in buckets:
        if bucket.length < 1:
            raise UsageError(f"{where}: {bucket.length} is no bucket", hint="buckets are at least 1 token long")
    ordered = sorted(buckets, key=lambda bucket: bucket.length)
    for one, other in pairwise(ordered):
        if one.length == other.length:
            raise UsageError(f"{where}: {one.length} stands there twice", hint="name each bucket once")
    return tuple(ordered)
