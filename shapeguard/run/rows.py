"""Makes rows of a file the rows of a training: token ids, with a class where one is wanted, packed where asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shapeguard.core.errors import UsageError
from shapeguard.run.prompts import rows_of
from shapeguard.run.settings import Train

TEXTS = ("input_ids", "text", "messages", "content", "sentence", "prompt")
"""Looked for in this order where no column is named."""
Row = dict[str, Any]


def read(settings: Train, file: str, tokenizer: Any, *, longest: int, classes: Sequence[str] = ()) -> list[Row]:
    """Read all rows; one that cannot be used is an error that names its place."""
    rows: list[Row] = []
    for where, values in rows_of(file):
        ids = _ids(settings, values, where, tokenizer)
        if not settings.packing and len(ids) > longest:
            if not settings.truncate:
                raise UsageError(
                    f"{where}: {len(ids)} tokens fit no bucket, the largest is {longest}",
                    hint="give a larger one with --buckets, or --truncate",
                )
            ids = ids[:longest]
        if not ids:
            raise UsageError(f"{where}: there are no tokens in it", hint="leave it out")
        row: Row = {"input_ids": ids}
        if settings.task == "classify":
            row["labels"] = _label(settings, values, where, classes)
        rows.append(row)
    if not rows:
        raise UsageError(f"{file} holds no rows", hint="give a file with a row a line")
    return list(pack(rows, longest, tokenizer.eos_token_id)) if settings.packing else rows


def classes_of(settings: Train) -> tuple[str, ...]:
    """Give the classes of the training rows, in the order of their names, or of their numbers."""
    found = {_class(settings, values, where) for where, values in rows_of(settings.train_file)}
    if len(found) < 2:
        raise UsageError(f"{settings.train_file} has one class only: {', '.join(found)}", hint="check --label-column")
    is_numbers = all(name.isascii() and name.isdigit() for name in found)
    return tuple(map(str, range(max(map(int, found)) + 1))) if is_numbers else tuple(sorted(found))


def pack(rows: Sequence[Row], length: int, end: int | None) -> Iterator[Row]:
    """Join rows, with the end token between them, and cut them into rows of one length; only the last is shorter."""
    waiting: list[int] = []
    for row in rows:
        waiting += row["input_ids"]
        if end is not None and waiting[-1] != end:
            waiting.append(end)
        start = 0
        while len(waiting) - start >= length:
            yield {"input_ids": waiting[start : start + length]}
            start += length
        del waiting[:start]
    if waiting:
        yield {"input_ids": waiting}


def _ids(settings: Train, values: Mapping[str, Any], where: str, tokenizer: Any) -> list[int]:
    name = settings.text_column or next((each for each in TEXTS if each in values), "")
    if name not in values:
        columns = ", ".join(repr(str(each)) for each in values) or "none"
        wanted = repr(name) if name else "column of texts"
        raise UsageError(
            f"{where}: there is no {wanted}", hint=f"its columns are {columns}; name one with --text-column"
        )
    value = values[name]
    if isinstance(value, str):
        return list(tokenizer(value)["input_ids"])
    if isinstance(value, list) and all(isinstance(each, int) for each in value):
        return value
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return _chat(value, where, tokenizer)
    raise UsageError(f"{where}: {name!r} is no text, no chat and no list of token ids", hint="give --text-column")


def _chat(messages: list[Any], where: str, tokenizer: Any) -> list[int]:
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError(f"{where}: a chat needs a template, and this tokenizer has none", hint="give texts")
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    # Templates are programs of the model's makers, and raise what they like.
    except Exception as error:
        raise UsageError(f"{where}: the chat template refuses it: {error}") from error
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _label(settings: Train, values: Mapping[str, Any], where: str, classes: Sequence[str]) -> int:
    name = _class(settings, values, where)
    if name not in classes:
        raise UsageError(
            f"{where}: the class {name!r} is not one of the training rows", hint=f"they are {', '.join(classes)}"
        )
    return classes.index(name)


def _class(settings: Train, values: Mapping[str, Any], where: str) -> str:
    value = values.get(settings.label_column)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise UsageError(
            f"{where}: {settings.label_column!r} is {value!r}, no class", hint="a class is a name or a number from 0"
        )
    return str(value)
