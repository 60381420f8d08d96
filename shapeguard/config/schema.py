"""Reads TOML values into settings dataclasses, and says precisely what is wrong with a value."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Any, Union, get_args, get_origin, get_type_hints

from shapeguard.core.errors import ConfigError

Origin = Callable[[str], str]
"""Gives the file, and the line of a dotted key in it: `pyproject.toml:12`."""


def build(cls: type[Any], table: object, *, where: str, origin: Origin) -> Any:
    """Make a settings object of a TOML table; `where` is the table's name."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{origin(where)}: {where or 'the file'} must be a table, not {_kind(table)}")
    known = {key(f.name): f for f in fields(cls)}
    wanted = hints(cls)
    values = {}
    for name, value in table.items():
        if name not in known:
            raise _unknown(name, list(known), where=where, origin=origin)
        field = known[name]
        values[field.name] = convert(value, wanted[field.name], where=_join(where, name), origin=origin)
        _check(value, field, where=_join(where, name), origin=origin)
    missing = [key(f.name) for f in fields(cls) if f.name not in values and _is_required(f)]
    if missing:
        raise ConfigError(
            f"{origin(where)}: {where or 'the file'} needs `{missing[0]}`", hint=f"add `{missing[0]} = …` to it"
        )
    return cls(**values)


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _check(value: object, field: Field[Any], *, where: str, origin: Origin) -> None:
    """Look at what a field's metadata asks for: `min`, `filled`, and the `words` that a text may be."""
    smallest, words = field.metadata.get("min"), field.metadata.get("words")
    if smallest is not None and isinstance(value, (int, float)) and not smallest <= value < float("inf"):
        raise ConfigError(f"{origin(where)}: {where} must be at least {smallest}, not {value}")
    if field.metadata.get("filled") and (not value or (isinstance(value, str) and not value.strip())):
        raise ConfigError(f"{origin(where)}: {where} must not be empty")
    if words is not None and isinstance(value, Mapping):
        for name, item in value.items():
            _check(item, field, where=f'{where}."{name}"', origin=origin)
    if words is not None and isinstance(value, str) and value not in words:
        close = get_close_matches(value, words, n=1)
        hint = f"did you mean {close[0]!r}?" if close else field.metadata.get("hint", "")
        listed = " nor ".join(f'"{word}"' for word in words)
        raise ConfigError(f"{origin(where)}: {where} = {value!r} is neither {listed}", hint=hint)


def hints(cls: type[Any]) -> dict[str, Any]:
    """The types of a settings class's fields."""
    return get_type_hints(cls)


def key(name: str) -> str:
    """How TOML calls a field."""
    return name.replace("_", "-")


def convert(value: object, wanted: Any, *, where: str, origin: Origin) -> Any:
    """Give the value as the wanted type, or say which type it has and which it should have."""
    for option in _options(wanted):
        if is_dataclass(option):
            return build(option, value, where=where, origin=origin)  # type: ignore[arg-type]
        converted = _plain(value, option, where=where, origin=origin)
        if converted is not MISSING:
            return converted
    said = f"{origin(where)}: {where} must be {describe(wanted)}, not {_kind(value)}"
    raise ConfigError(said, hint=_meant(value, wanted))


def _meant(value: object, wanted: Any) -> str:
    """Give what was meant by a value of a wrong type, where that is plain."""
    if isinstance(value, str) and wanted is date and _is_date(value):
        return f"write it without quotes: {value}"
    if isinstance(value, str) and wanted == tuple[str, ...]:
        return f"write {json.dumps(value.split() or [value], ensure_ascii=False)}"
    return ""


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _options(wanted: Any) -> tuple[Any, ...]:
    is_union = get_origin(wanted) in (Union, types.UnionType)
    return tuple(option for option in get_args(wanted) if option is not type(None)) if is_union else (wanted,)


def _plain(value: object, wanted: Any, *, where: str, origin: Origin) -> Any:
    """The value if it fits the type, else MISSING."""
    container = get_origin(wanted)
    if container is tuple and isinstance(value, list):
        item = get_args(wanted)[0]
        rows = enumerate(value, 1)
        return tuple(convert(row, item, where=f"{where}[{number}]", origin=origin) for number, row in rows)
    if container is Mapping and isinstance(value, Mapping):
        item = get_args(wanted)[1]
        return {str(k): convert(v, item, where=f'{where}."{k}"', origin=origin) for k, v in value.items()}
    if wanted is date and isinstance(value, datetime):
        return MISSING
    if container is None and isinstance(value, wanted) and not (isinstance(value, bool) and wanted is not bool):
        return value
    return MISSING


def describe(wanted: Any) -> str:
    """A type as a person calls it."""
    words = {
        str: "a text",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        date: "a date such as 2026-12-31",
    }
    return " or ".join(_described(option, words) for option in _options(wanted))


def _described(wanted: Any, words: Mapping[Any, str]) -> str:
    container = get_origin(wanted)
    if container is tuple:
        item = get_args(wanted)[0]
        return "a list of tables" if is_dataclass(item) else "a list of texts"
    if container is Mapping or is_dataclass(wanted):
        return "a table"
    return words.get(wanted, str(wanted))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, Mapping)):
        return "a list" if isinstance(value, list) else "a table"
    return str(value) if isinstance(value, (date, time)) else repr(value)


def _unknown(name: str, known: list[str], *, where: str, origin: Origin) -> ConfigError:
    close = get_close_matches(name.replace("_", "-"), known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it knows {', '.join(sorted(known))}"
    return ConfigError(f"{origin(_join(where, name))}: unknown key {_join(where, name)!r}", hint=hint)


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def leaves(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any, Field[Any]]]:
    """Every value of a settings object, with its dotted key."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = _join(prefix, key(field.name))
        if is_dataclass(value):
            yield from leaves(value, name)
        else:
            yield name, value, field
