"""`shapeguard config`."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any

import click

from shapeguard.cli.configured import Configs, config_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import JSON, Report, Table


@click.command(short_help="Print the settings and where each came from.")
@click.option("--set-only", is_flag=True, help="Leave out what nobody has set.")
@config_options
@report_options
def command(configs: Configs, set_only: bool) -> Report:
    """Print the settings that count in the working directory, and where each came from."""
    from shapeguard.config.load import DEFAULT
    from shapeguard.config.schema import leaves

    here = configs.here
    rows = [(name, value, here.origins.get(name, DEFAULT)) for name, value, _ in leaves(here.settings)]
    rows = [row for row in rows if row[2] != DEFAULT or not set_only]
    settings: dict[str, dict[str, JSON]] = {
        name: {"value": _plain(value), "from": origin} for name, value, origin in rows
    }
    document: dict[str, JSON] = {
        "schema": 1,
        "file": None if here.file is None else os.fspath(here.file),
        "settings": settings,
    }
    # The value last: one that is long would push what stands right of it out of sight.
    table = Table(
        columns=("key", "from", "value"),
        rows=tuple((name, origin, json.dumps(_plain(value), ensure_ascii=False)) for name, value, origin in rows),
        note="" if here.file else "no configuration file was found",
    )
    lines = [{"key": name, **setting} for name, setting in settings.items()]
    return Report(tool="config", sections=(table,), document=document, is_listing=True, rows=lines)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name.replace("_", "-"): getattr(value, field.name) for field in fields(value)}
        return {key: _plain(item) for key, item in named.items() if item is not None}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
