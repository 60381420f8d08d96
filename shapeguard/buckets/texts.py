"""Lengths of rows of data: JSONL, CSV, text, Arrow and Parquet files, folders of `datasets`, through a tokenizer."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from shapeguard.buckets.lengths import Lengths
from shapeguard.core.errors import DeviceError, UsageError

_BATCH = 1000
_COLUMNS = ("input_ids", "length", "text", "prompt", "content", "sentence")
"""Looked for in this order where no column is named."""
_TIMES = ("count", "counts", "frequency")
"""Beside a length: how many rows have it."""
_DIGITS = 15
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_ARROW = (".arrow", ".parquet")

Row = tuple[str, Mapping[str, Any]]
"""Where a row stands, and its values by column."""


def read_data(path: str, *, tokenizer: str | None, column: str | None, split: str | None) -> Lengths:
    """Measure the rows of a file or folder: a list has its number of items, a text its tokens, a number is a length."""
    source = Path(path)
    if not source.exists():
        raise UsageError(f"{path!r} does not exist", hint="give a JSONL, CSV or text file, or a folder of `datasets`")
    encode = _Encoder(tokenizer)
    counts: Counter[int] = Counter()
    is_histogram = False
    rows = iter(read_rows(source, split))
    name = column
    try:
        while batch := list(islice(rows, _BATCH)):
            name = name or _column(batch[0])
            values = [(where, encode.plain(_value(row, name, where))) for where, row in batch]
            times = [
                _times(row, where) if isinstance(value, int) and name not in _TIMES else 1
                for (_, value), (where, row) in zip(values, batch, strict=True)
            ]
            for length, number in zip(_measured(values, encode), times, strict=True):
                counts[length] += number
            is_histogram = is_histogram or any(number != 1 for number in times)
    except OSError as error:
        raise UsageError(f"cannot read {path!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path!r} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    if not counts:
        raise UsageError(f"{path!r} holds no rows", hint="give a file with a row a line")
    notes = ("each length counts as often as its row says",) if is_histogram else ()
    return Lengths(counts=counts, source=path, notes=notes)


def _times(row: Mapping[str, Any], where: str) -> int:
    """Give how many rows have the length that a row of a histogram states; 1 where it says nothing of it."""
    value = next((row[name] for name in _TIMES if name in row), 1)
    value = _as_number(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{where}: {_shown(value)} is no count of rows", hint="give whole numbers, from 0")
    return value


def _as_number(value: object) -> object:
    """Give a whole number that a table holds as text; anything else as it is."""
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS
    return int(value) if is_number else value  # type: ignore[call-overload]


def _measured(rows: Sequence[tuple[str, object]], encode: Callable[[list[str], str], list[int]]) -> Iterator[int]:
    texts = [value for _, value in rows if isinstance(value, str)]
    measured = iter(encode(texts, rows[0][0]) if texts else ())
    for where, value in rows:
        if isinstance(value, str):
            yield next(measured)
        elif isinstance(value, list) and (not value or isinstance(value[0], int)):
            yield len(value)
        elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            yield value
        else:
            raise UsageError(
                f"{where}: {_shown(value)} is no text, no list of token ids and no length",
                hint="name another column with --column; chats must be made texts by their template first",
            )


def _value(row: Mapping[str, Any], column: str, where: str) -> object:
    if column not in row:
        raise UsageError(f"{where}: there is no {column!r}", hint=f"its columns are {_listed(row)}; give --column")
    return row[column]


def _column(row: Row) -> str:
    where, values = row
    found = next((name for name in _COLUMNS if name in values), None)
    if found is None and len(values) == 1:
        found = next(iter(values))
    if found is None:
        raise UsageError(f"{where}: which column holds the rows?", hint=f"give --column: {_listed(values)}")
    return found


def _listed(values: Iterable[str]) -> str:
    return ", ".join(repr(str(name)) for name in list(values)[:12]) or "none"


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:40] + "…"


def read_rows(source: Path, split: str | None) -> Iterator[Row]:
    """Give the rows of a file, or of a folder that `datasets` saved, each with the place where it stands."""
    if source.is_dir():
        for file in _files_of_dataset(source, split):
            yield from _arrow(file)
        return
    if split is not None:
        raise UsageError(f"{str(source)!r} is a file and has no splits", hint="leave out --split")
    suffix = source.suffix.lower()
    if suffix in _ARROW:
        yield from _arrow(source)
    elif suffix in (".jsonl", ".ndjson", ".json"):
        yield from _json_lines(source)
    elif suffix in _SEPARATORS:
        yield from _table(source, _SEPARATORS[suffix])
    else:
        yield from _plain(source)


def _plain(source: Path) -> Iterator[Row]:
    with source.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield f"{source}:{number}", {"text": line.rstrip("\r\n")}


def _json_lines(source: Path) -> Iterator[Row]:
    with source.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            where = f"{source}:{number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(
                    f"{where}: this line is no JSON: {error}", hint="give one JSON object a line"
                ) from error
            if isinstance(value, list) and value and isinstance(value[0], dict):
                yield from ((f"{where}[{i}]", row) for i, row in enumerate(value) if isinstance(row, dict))
            else:
                yield where, value if isinstance(value, dict) else {"text": value}


def _table(source: Path, separator: str) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)
    with source.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.DictReader(stream, delimiter=separator)
        for row in rows:
            values = {name: value for name, value in row.items() if name is not None and value is not None}
            number = values.get("length", "")
            if number.isascii() and number.isdigit():
                values = {**values, "length": int(number)}
            yield f"{source}:{rows.line_num}", values


def _files_of_dataset(folder: Path, split: str | None) -> list[Path]:
    """The data files of a folder that `save_to_disk` wrote."""
    splits = _read_json(folder / "dataset_dict.json").get("splits")
    if isinstance(splits, list):
        wanted = split or ("train" if "train" in splits or len(splits) > 1 else str(splits[0]) if splits else "")
        if wanted not in splits:
            raise UsageError(f"{str(folder)!r} has no split {wanted!r}", hint=f"give --split: {_listed(splits)}")
        return _files_of_dataset(folder / Path(wanted).name, None)
    if split is not None:
        raise UsageError(f"{str(folder)!r} has no splits", hint="leave out --split")
    listed = _read_json(folder / "state.json").get("_data_files")
    names = [str(each.get("filename")) for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if not names:
        raise UsageError(
            f"{str(folder)!r} is no folder of `datasets`: it has no state.json that names data files",
            hint="give a folder that `save_to_disk` wrote",
        )
    return [folder / Path(name).name for name in names]


def _read_json(path: Path) -> Mapping[str, object]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _arrow(file: Path) -> Iterator[Row]:
    """Read through pyarrow, which `datasets` itself writes with."""
    arrow = _import("pyarrow", "pyarrow")
    try:
        for number, row in enumerate(_arrow_rows(arrow, file)):
            yield f"{file} row {number}", row
    except arrow.ArrowInvalid as error:
        raise UsageError(f"{str(file)!r} is no Arrow or Parquet data: {str(error)[:120]}") from error


def _arrow_rows(arrow: Any, file: Path) -> Iterator[Mapping[str, Any]]:
    if file.suffix.lower() == ".parquet":
        for batch in _import("pyarrow.parquet", "pyarrow").ParquetFile(file).iter_batches():
            yield from batch.to_pylist()
        return
    with arrow.memory_map(str(file)) as stream:
        try:
            batches = arrow.ipc.open_stream(stream)
        except arrow.ArrowInvalid:
            reader = arrow.ipc.open_file(stream)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        for batch in batches:
            yield from batch.to_pylist()


class _Encoder:
    """Counts tokens; the tokenizer is loaded when the first text comes."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._tokenizer = _load(name) if name is not None else None

    def plain(self, value: object) -> object:
        """Give a number where a text is one and no tokenizer was given to measure it."""
        return value if self._tokenizer is not None else _as_number(value)

    def __call__(self, texts: list[str], where: str) -> list[int]:
        if self._tokenizer is None:
            raise UsageError(f"{where}: texts need a tokenizer", hint="give --tokenizer FOLDER, with a tokenizer.json")
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(texts)]


def _load(name: str) -> Any:
    tokenizers = _import("tokenizers", "'shapeguard[trace]'")
    path = Path(name)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        file = _from_hub(name)
    try:
        found = tokenizers.Tokenizer.from_file(str(file))
    # Tokenizers raises plain `Exception` from Rust.
    except Exception as error:
        raise UsageError(f"{str(file)!r} is no tokenizer: {str(error)[:120]}", hint="give a tokenizer.json") from error
    found.no_padding()
    found.no_truncation()
    return found


def _from_hub(name: str) -> Path:
    """The file of a tokenizer on the Hugging Face hub, from its local cache where it lies there."""
    unknown = UsageError(
        f"there is no tokenizer {name!r}", hint="give a folder with a tokenizer.json, or a name on the Hugging Face hub"
    )
    parts = name.split("/")
    if len(parts) > 2 or not all(parts) or name.startswith((".", "~")) or Path(name).exists():
        raise unknown
    hub = _import("huggingface_hub", "'shapeguard[trace]'")
    try:
        cached = hub.try_to_load_from_cache(name, "tokenizer.json")
        return Path(cached if isinstance(cached, str) else hub.hf_hub_download(name, "tokenizer.json"))
    # Every way a download can fail, for which the hub has a dozen classes, one of them ValueError.
    except Exception as error:
        raise unknown from error


def _import(module: str, package: str) -> Any:
    """Import what an extra brings; by name, since this part is read without torch or transformers."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DeviceError(f"{module} is not installed", hint=f"pip install {package}") from error
