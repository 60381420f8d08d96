"""The lengths to plan for: from a file of numbers, a histogram, or the batches of a run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from shapeguard.core.errors import UsageError

_CHUNK = 1 << 20
_DIGITS = 15
"""Longer numbers are no lengths; such a line is rather a file of something else."""
_NO_NUMBERS = (bool, float, list, dict, type(None))
_COUNTS = ("count", "counts", "rows", "frequency", "n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How many rows have which length, and what is known about where they come from."""

    counts: Mapping[int, int]
    source: str
    notes: tuple[str, ...] = ()
    """What a reader must know about how they were counted."""
    tokens: tuple[int, int] | None = None
    """Real and padding tokens as a run counted them before the plan."""
    shapes: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """Rows and padded length of the batches of a run, with how often each came."""

    @property
    def num_rows(self) -> int:
        """Rows of all lengths."""
        return sum(self.counts.values())

    @property
    def real_tokens(self) -> int | None:
        """Give the real tokens of all rows where a run counted them; its lengths are those after padding."""
        if self.tokens is None or sum(self.tokens) != sum(length * rows for length, rows in self.counts.items()):
            return None
        return self.tokens[0]

    def truncated(self, longest: int) -> Lengths:
        """Cut every row to a length."""
        counts: Counter[int] = Counter()
        for length, count in self.counts.items():
            counts[min(length, longest)] += count
        cut = sum(count for length, count in self.counts.items() if length > longest)
        notes = (*self.notes, f"{cut:,} rows were cut to {longest} tokens") if cut else self.notes
        return Lengths(counts=counts, source=self.source, notes=notes, tokens=self.tokens, shapes=self.shapes)


def read_lengths(path: str) -> Lengths:
    """Read a file of numbers or a histogram; `-` is standard input."""
    name = "standard input" if path == "-" else path
    try:
        if path == "-":
            return Lengths(counts=_counts(sys.stdin.buffer, name), source=name)
        with Path(path).open("rb") as stream:
            return Lengths(counts=_counts(stream, name), source=name)
    except OSError as error:
        raise UsageError(f"cannot read {name!r}: {error.strerror or error}", hint="give a file of lengths") from error


def _counts(stream: BinaryIO, name: str) -> Mapping[int, int]:
    head = stream.read(_CHUNK).removeprefix(b"\xef\xbb\xbf")
    start = head.lstrip()[:1]
    if start in (b"[", b"{"):
        return _of_json(head + stream.read(), name)
    first, _, rest = head.lstrip().partition(b"\n")
    if first and not _is_numbers(first):
        if len(_cells(first.decode("utf-8", "replace").strip())) == 1:
            return _of_numbers(rest, stream, name)
        return _of_table(_lines(head, stream), name)
    return _of_numbers(head, stream, name)


def _is_numbers(line: bytes) -> bool:
    """Whether a line holds values rather than headings; a broken value is not a heading."""
    return any(byte in b"0123456789" for byte in line) or line[:1] == b"-" or not line.isascii()


def _of_numbers(head: bytes, stream: BinaryIO, name: str) -> Mapping[int, int]:
    """Count first and read the distinct numbers afterwards: ten million take a second."""
    words: Counter[bytes] = Counter()
    for chunk in _chunks(head, stream):
        words.update((chunk.replace(b",", b" ") if b"," in chunk else chunk).split())
    counts: Counter[int] = Counter()
    for word, count in words.items():
        counts[_length(word.decode("utf-8", "replace"), name)] += count
    return counts


def _chunks(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Give the rest of a stream in pieces that end where a number does."""
    rest = head
    while more := stream.read(_CHUNK):
        cut = max(rest.rfind(mark) for mark in (b"\n", b" ", b",", b"\t")) + 1
        if cut:
            yield rest[:cut]
        rest = rest[cut:] + more
    yield rest


def _length(word: str, where: str, what: str = "length") -> int:
    if word.isascii() and word.isdigit() and len(word) <= _DIGITS:
        return int(word)
    shown = repr(word if len(word) <= 40 else word[:40] + "…")
    if word[:1] == "-" and word[1:].isdigit():
        raise UsageError(f"{where}: the {what} {word[:40]} is negative", hint="lengths count tokens, from 0")
    raise UsageError(
        f"{where}: {shown} is no {what}",
        hint="give whole numbers, one a line; for texts give --data with --tokenizer",
    )


def _lines(head: bytes, stream: BinaryIO) -> Iterator[str]:
    yield from (head + stream.read()).decode("utf-8", "replace").splitlines()


def _of_table(lines: Iterable[str], name: str) -> Mapping[int, int]:
    """A table with headings: lengths alone, or lengths and how many rows have them."""
    rows = iter(lines)
    heads = [head.strip().strip('"').lower() for head in _cells(next(rows))]
    counted = next((i for i, head in enumerate(heads) if head in _COUNTS), None)
    lengths = [i for i, head in enumerate(heads) if i != counted]
    if len(heads) > 2 or len(lengths) != 1 or len(heads) - len(lengths) > 1:
        raise UsageError(
            f"{name}: the headings {', '.join(heads)[:80]} are not those of lengths",
            hint="head the columns `length,count`, or give --data with --tokenizer for texts",
        )
    counts: Counter[int] = Counter()
    for number, row in enumerate(rows, 2):
        if not row.strip():
            continue
        cells = [cell.strip() for cell in _cells(row)]
        if len(cells) != len(heads):
            raise UsageError(
                f"{name}:{number}: {len(cells)} values under {len(heads)} headings",
                hint="give each row a value for each heading",
            )
        where = f"{name}:{number}"
        times = 1 if counted is None else _length(cells[counted], where, "count")
        counts[_length(cells[lengths[0]], where)] += times
    return counts


def _cells(row: str) -> list[str]:
    for mark in (",", ";", "\t"):
        if mark in row:
            return row.split(mark)
    return row.split() or [""]


def _of_json(data: bytes, name: str) -> Mapping[int, int]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        hint = "rows of JSON are read with --data" if data.lstrip()[:1] == b"{" else "give a list of lengths"
        raise UsageError(f"{name}: this is no JSON: {error}", hint=hint) from error
    counts: Counter[int] = Counter()
    for length, count in value.items() if isinstance(value, dict) else ((each, 1) for each in value):
        wrong = next((json.dumps(each) for each in (length, count) if isinstance(each, _NO_NUMBERS)), None)
        if wrong is not None or isinstance(count, str):
            wrong = wrong or json.dumps(count)
            raise UsageError(
                f"{name}: {wrong[:40]} is no whole number", hint="give [12, 40, …] or {length: count, …} in JSON"
            )
        counts[_length(str(length), name)] += _length(str(count), name, "count")
    return counts


def from_batches(
    batches: Iterable[tuple[Mapping[str, tuple[int, ...]], int]],
    *,
    tokens: tuple[int, int],
    source: str,
    rows: Mapping[int, int] | None = None,
) -> Lengths:
    """Count the rows of a run's batches; where not all `rows` were recorded, each with the length of its batch."""
    shapes: Counter[tuple[int, int]] = Counter()
    for named, times in batches:
        shape = _of_tokens(named)
        if shape is not None:
            shapes[shape] += times
    counts: Counter[int] = Counter()
    for (number, length), times in shapes.items():
        counts[length] += number * times
    known = tokens if any(tokens) else None
    if rows and sum(rows.values()) == sum(counts.values()):
        return Lengths(counts=rows, source=source, tokens=known, shapes=shapes)
    notes = (
        "a run records the shape of a batch: each row counts with the length it was padded to, "
        "so that a plan pads at most as much as shown",
    )
    return Lengths(counts=counts, source=source, notes=notes, tokens=known, shapes=shapes)


def from_calls(shapes: Iterable[tuple[int, ...]], *, source: str) -> Lengths:
    """Count each shape of token ids once that a run without data loaders handed to its model."""
    counts: Counter[int] = Counter()
    for shape in set(shapes):
        counts[shape[-1]] += 1
    notes = ("the run has no batches: each length that reached the model counts once",)
    return Lengths(counts=counts, source=source, notes=notes)


def _of_tokens(named: Mapping[str, tuple[int, ...]]) -> tuple[int, int] | None:
    ranked = [named.get(name, ()) for name in ("input_ids", "inputs_embeds", "attention_mask", "0")]
    shape = next((shape for shape in [*ranked, *named.values()] if len(shape) >= 2), None)
    return None if shape is None else (shape[0], shape[1])
