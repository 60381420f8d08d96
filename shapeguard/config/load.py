"""Finds a configuration, checks it, and remembers where each value came from.

`[tool.shapeguard]` in `pyproject.toml`, or `shapeguard.toml` with the same keys at its top, which wins where both stand
in one folder. The nearest such file upward counts, alone. An environment variable wins over the file, an option over
both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from shapeguard.config.lines import line_of
from shapeguard.config.schema import build, key
from shapeguard.config.settings import Settings
from shapeguard.core.errors import ConfigError

STANDALONE = "shapeguard.toml"
PROJECT = "pyproject.toml"
DEFAULT = "default"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings, and where they came from."""

    settings: Settings = field(default_factory=Settings)
    root: Path
    """The folder that patterns and relative paths of the configuration count from."""
    file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    """Dotted key to "pyproject.toml" or "SHAPEGUARD_CACHE_DIR"; a key that is missing has its default."""


def find(folder: Path) -> Path | None:
    """Give the configuration that counts in a folder: the nearest one upward."""
    whole = folder.absolute()
    for parent in (whole, *whole.parents):
        if (found := in_folder(parent)) is not None:
            return found
    return None


def in_folder(folder: Path) -> Path | None:
    """Give the configuration that stands in the folder itself."""
    if (folder / STANDALONE).is_file():
        return folder / STANDALONE
    project = folder / PROJECT
    if not project.is_file() or not _names_us(project):
        return None
    return project if _table(project) is not None else None


def _names_us(file: Path) -> bool:
    """Whether the file might hold our table; one that cannot be read or parsed is only our concern if it does."""
    try:
        return b"shapeguard" in file.read_bytes()
    except OSError:
        return False


def load(file: Path | None, *, root: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Read a configuration file, if there is one, and the environment."""
    settings, origins = Settings(), {}
    if file is not None:
        table = _table(file)
        if table is None:
            raise ConfigError(
                f"{os.fspath(file)}: there is no [tool.shapeguard] in it", hint=f"add the table, or use a {STANDALONE}"
            )
        settings = build(Settings, table, where="", origin=partial(_at, file))
        origins = {name: _shown(file) for name in _names(table)}
        root = file.parent
    settings, from_environment = _with_environment(settings, environment)
    return Config(settings=settings, root=root, file=file, origins={**origins, **from_environment})


def _at(file: Path, where: str) -> str:
    """Give the file's name with the line of a key."""
    return f"{_shown(file)}:{key_line(file, where)}"


def key_line(file: Path, where: str) -> int:
    """Give the line of a dotted key of ours in a configuration."""
    prefix = "tool.shapeguard." if file.name == PROJECT else ""
    return line_of(file.read_bytes().decode("utf-8-sig", "replace"), prefix + where)


def _shown(file: Path) -> str:
    inside = os.path.relpath(file)
    return inside if not inside.startswith("..") else os.fspath(file)


def _table(file: Path) -> Mapping[str, Any] | None:
    """The file's part for us; None in a `pyproject.toml` that does not speak of us."""
    document = _document(file)
    if file.name != PROJECT:
        return document
    tool = document.get("tool")
    table = tool.get("shapeguard") if isinstance(tool, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise ConfigError(f"{_at(file, '')}: tool.shapeguard must be a table, not {table!r}")
    return table


def _document(file: Path) -> dict[str, Any]:
    # Here, since most starts find no file of ours: 5 ms.
    import tomllib

    name = _shown(file)
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror or error}", hint="give --config a TOML file") from error
    except UnicodeDecodeError as error:
        line = file.read_bytes().count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}:{line}: not UTF-8", hint="TOML files are always UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name} is no TOML: {error}", hint="mend the line it names") from error


def _names(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted keys of a table that was accepted, without going into tables of the user's own keys."""
    names = []
    for name, value in table.items():
        dotted = f"{prefix}{name}"
        is_part = isinstance(value, Mapping) and not prefix
        names += _names(value, f"{dotted}.") if is_part else [dotted]
    return names


def _with_environment(settings: Settings, environment: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    changes: dict[str, Any] = {}
    origins = {}
    for item in fields(Settings):
        variable = item.metadata.get("env", "")
        if variable not in environment:
            continue
        text = environment[variable]
        changes[item.name] = _truth(variable, text) if isinstance(getattr(settings, item.name), bool) else text
        origins[key(item.name)] = variable
    return replace(settings, **changes), origins


def _truth(variable: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ConfigError(f"{variable}={text!r} is neither true nor false", hint="set it to 1 or 0")
