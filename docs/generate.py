"""Writes the reference pages from the code: `rules/`, `cli.md`, `config.md`, `fidelity.md`.

Run it as `python docs/generate.py`; with `--check` it only says what is out of date.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import fidelity

from shapeguard.cli.commands.rule import properties
from shapeguard.cli.main import group
from shapeguard.config.schema import describe, hints, key
from shapeguard.config.settings import Settings
from shapeguard.lint.notices import catalogue

DOCS = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py; change the code instead. -->\n\n"


def pages() -> dict[str, str]:
    """Every page by its path below `docs`."""
    rules = catalogue()
    written = {
        f"rules/{code}.md": f"{NOTE}# {code} {rule.name}\n\n{properties(rule)}\n\n{rule.documentation}\n"
        for code, rule in rules.items()
    }
    written["rules/index.md"] = NOTE + "".join(_rule_index())
    written["cli.md"] = NOTE + "# Commands\n\n" + "\n".join(_commands())
    written["config.md"] = NOTE + _CONFIG_HEAD + "".join(_settings(Settings, "tool.shapeguard"))
    written["fidelity.md"] = NOTE + fidelity.page()
    return written


def _rule_index() -> Iterator[str]:
    yield "# Rules\n\nN: speaks only in code for Neuron, see `neuron` in [the settings](../config.md).\n\n"
    yield "| code | finds | default | |\n|---|---|---|---|\n"
    for code, rule in catalogue().items():
        first = rule.summary.replace("|", "\\|")
        default = "on" if rule.on_by_default else "off"
        yield f"| [{code}]({code}.md) | {first} | {default} | {'N' if rule.neuron_only else ''} |\n"


def _commands() -> Iterator[str]:
    parent = click.Context(group, info_name="shapeguard", max_content_width=100, terminal_width=100)
    yield f"```text\n{group.get_help(parent)}\n```\n"
    yield from _below(group, parent, "## shapeguard")


def _below(owner: click.Group, parent: click.Context, heading: str) -> Iterator[str]:
    """The commands of a group, each with its own."""
    for name in owner.list_commands(parent):
        command = owner.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
        yield f"{heading} {name}\n\n```text\n{command.get_help(context)}\n```\n"
        if isinstance(command, click.Group):
            yield from _below(command, context, f"#{heading} {name}")


_CONFIG_HEAD = """# Settings

In `[tool.shapeguard]` of `pyproject.toml`, or with the same keys in a `shapeguard.toml`, which wins where both stand in
one folder. The nearest such file upward counts. `shapeguard config` prints what is in force and where it came from. An
environment variable wins over the file, an option over both.

"""


def _settings(cls: type[Any], table: str) -> Iterator[str]:
    documentation = _field_documentation(cls)
    wanted = hints(cls)
    nested = []
    yield f"## `[{table}]`\n\n"
    for field in fields(cls):
        kind = wanted[field.name]
        if is_dataclass(kind):
            nested.append((kind, f"{table}.{key(field.name)}"))
            continue
        default = _default(field)
        variable = f", environment variable `{field.metadata['env']}`" if "env" in field.metadata else ""
        yield f"**`{key(field.name)}`** ({describe(kind)}; {default}{variable})  \n"
        yield f"{documentation.get(field.name, '')}\n\n"
        item = next((a for a in getattr(kind, "__args__", ()) if is_dataclass(a)), None)
        if item is not None:
            is_named = getattr(kind, "__origin__", None) is Mapping
            name = f"{table}.{key(field.name)}"
            nested.append((item, f"{name}.NAME" if is_named else f"[{name}]"))
    for kind, name in nested:
        yield from _settings(kind, name)


def _default(field: Field[Any]) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    return f"default `{_toml(value)}`"


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value) if value is not None else "none"


def _field_documentation(cls: type[Any]) -> dict[str, str]:
    """The string under each field of a dataclass."""
    body = ast.parse(inspect.cleandoc(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            text = ast.literal_eval(following.value)
            found[statement.target.id] = " ".join(str(text).split())  # type: ignore[union-attr]
    return found


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` compare them."""
    is_check = "--check" in arguments
    wanted = pages()
    stale = [name for name, text in wanted.items() if not _is_same(DOCS / name, text)]
    left = [file for file in (DOCS / "rules").glob("*.md") if f"rules/{file.name}" not in wanted]
    if is_check:
        for name in [*stale, *(f"rules/{file.name}" for file in left)]:
            print(f"docs/{name} is out of date; run `python docs/generate.py`", file=sys.stderr)
        return 1 if stale or left else 0
    (DOCS / "rules").mkdir(exist_ok=True)
    for name in stale:
        (DOCS / name).write_text(wanted[name], encoding="utf-8")
    for file in left:
        file.unlink()
    return 0


def _is_same(file: Path, text: str) -> bool:
    return file.exists() and file.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
