"""Reads prompts: texts, chats and texts with images, from arguments or a file. Never imports torch."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapeguard.buckets.texts import Row, read_rows
from shapeguard.core.errors import UsageError

COLUMNS = ("prompt", "messages", "text", "sentence", "content")
"""Looked for in this order where no column is named."""
IMAGES = ("image", "images")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt, and where it stands."""

    where: str
    text: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    """A chat, which the model's template makes a text."""
    images: tuple[str, ...] = ()


def read_prompts(arguments: Sequence[str], file: str, *, column: str = "", shown: str = "") -> list[Prompt]:
    """Read all prompts, in their order; a broken or an empty one is an error that names its place.

    `shown` is how a file is called that stands for something else: standard input.
    """
    if arguments:
        return [_of_text(text, f"prompt {number}") for number, text in enumerate(arguments, 1)]
    found = []
    for where, row in rows_of(file, shown):
        name = column or next((each for each in COLUMNS if each in row), "")
        if name not in row or {"role", "content"} <= set(row):
            raise _no_prompt(name, row, where)
        found.append(_of_value(row[name], row, where, Path(file).parent))
    if not found:
        raise UsageError(f"{shown or file} holds no prompts", hint="give a file with a prompt a line")
    return found


def rows_of(file: str, shown: str = "") -> Iterator[Row]:
    """Give the rows of a file or folder with their places; what cannot be read is one clear error."""
    path = Path(file)
    name = shown or file
    if not path.exists():
        raise UsageError(f"there is no file {file}", hint="give a JSONL, CSV or text file")
    try:
        for where, row in read_rows(path, None):
            yield where.replace(str(path), name, 1), row
    except UsageError as error:
        raise UsageError(error.message.replace(str(path), name, 1), hint=error.hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except (OSError, csv.Error) as error:
        raise UsageError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error


def _no_prompt(name: str, row: Mapping[str, Any], where: str) -> UsageError:
    if {"role", "content"} <= set(row):
        return UsageError(f"{where}: a chat is an object with its messages", hint='write {"messages": [{"role": …}]}')
    columns = ", ".join(repr(str(each)) for each in row) or "none"
    wanted = repr(name) if name else "column of prompts"
    return UsageError(f"{where}: there is no {wanted}", hint=f"its columns are {columns}; name one with --column")


def _of_value(value: object, row: Mapping[str, Any], where: str, folder: Path) -> Prompt:
    images = _images(row, where, folder)
    if isinstance(value, str):
        return _of_text(value, where, images)
    if isinstance(value, list) and value and all(_is_message(each) for each in value):
        return Prompt(where=where, messages=tuple(value), images=images)
    raise UsageError(f"{where}: the prompt is no text and no chat", hint='a chat is [{"role": "user", "content": "…"}]')


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)


def _of_text(text: str, where: str, images: tuple[str, ...] = ()) -> Prompt:
    if not text.strip():
        raise UsageError(f"{where}: the prompt is empty", hint="leave it out, or give it a word")
    return Prompt(where=where, text=text, images=images)


def _images(row: Mapping[str, Any], where: str, folder: Path) -> tuple[str, ...]:
    value: object = next((row[name] for name in IMAGES if row.get(name)), [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{where}: images are given as paths", hint='for example {"prompt": "…", "image": "cat.png"}')
    for name in names:
        if not (folder / name).is_file():
            raise UsageError(f"{where}: there is no image {name}", hint="paths count from the folder of the file")
    return tuple(str(folder / name) for name in names)
