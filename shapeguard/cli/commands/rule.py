"""`shapeguard rule`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import JSON, Report, Table, Text

if TYPE_CHECKING:
    from shapeguard.core.rules import RuleEntry


@click.command(short_help="Explain a rule.")
@click.argument("codes", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="List every rule.")
@report_options
def command(codes: tuple[str, ...], is_all: bool) -> Report:
    """Print the page of each rule in CODES: why the pattern costs, an example, the right form, the fix."""
    from shapeguard.lint.notices import catalogue

    entries = catalogue()
    if not codes and not is_all:
        raise click.UsageError("Give a rule's code, for example SG304, or --all.")
    chosen = list(entries.values()) if is_all else [_entry(code, entries) for code in codes]
    plain = [_plain(entry) for entry in chosen]
    sections = (_list(chosen),) if is_all else tuple(Text(text=_page(entry), is_verbatim=True) for entry in chosen)
    return Report(
        tool="rule",
        sections=sections,
        document={"schema": 1, "rules": plain},
        is_listing=True,
        rows=plain,
        rules=tuple(chosen),
    )


def _entry(code: str, entries: dict[str, RuleEntry]) -> RuleEntry:
    from difflib import get_close_matches

    wanted = code.strip().upper()
    by_name = {entry.name.upper(): entry for entry in entries.values()}
    found = entries.get(wanted) or by_name.get(wanted)
    if found is not None:
        return found
    close = get_close_matches(wanted, list(entries), n=1, cutoff=0.75)
    hint = f"did you mean {close[0]}?" if close else "`shapeguard rule --all` lists the rules"
    raise UsageError(f"no rule is called {code!r}", hint=hint)


def _page(entry: RuleEntry) -> str:
    return f"# {entry.code} {entry.name}\n\n{properties(entry)}\n\n{entry.documentation}\n"


def properties(entry: RuleEntry) -> str:
    """What a reader must know before the page: severity, where it speaks, whether it is on."""
    where = "only in code for Neuron" if entry.neuron_only else "in all code"
    default = "on by default" if entry.on_by_default else "off by default"
    return f"A {entry.severity}, {where}, {default}."


def _list(entries: list[RuleEntry]) -> Table:
    rows = [
        (
            entry.code,
            entry.name,
            str(entry.severity),
            "on" if entry.on_by_default else "off",
            "N" if entry.neuron_only else "",
            entry.summary,
        )
        for entry in entries
    ]
    return Table(
        columns=("code", "name", "severity", "default", "", "finds"),
        rows=tuple(rows),
        note="N: only in code for Neuron, see `neuron` in `[tool.shapeguard.lint]`",
    )


def _plain(entry: RuleEntry) -> dict[str, JSON]:
    return {
        "code": entry.code,
        "name": entry.name,
        "message": entry.message,
        "severity": str(entry.severity),
        "neuron_only": entry.neuron_only,
        "on_by_default": entry.on_by_default,
        "documentation": entry.documentation,
    }
