"""The frame of a page: escaping, style, tables; nothing here knows what a report is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from shapeguard.core.report import Table
from shapeguard.report.render import printable

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --dim: #57606a; --line: #d8dee4; --soft: #f6f8fa;
  --one: #1f6feb; --two: #b35900; --link: #0550ae }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6edf3; --dim: #9aa4ae; --line: #333b45;
  --soft: #1b2129; --one: #58a6ff; --two: #f0a04b; --link: #79b8ff } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 66rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1rem 0 .25rem }
p { margin: .4rem 0 } .dim { color: var(--dim) } .verdict { font-weight: 600; font-size: 1.1rem }
code, .code { font-family: ui-monospace, monospace; font-size: .9em }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .92em; overflow-wrap: normal }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th { color: var(--dim); font-weight: 500; white-space: nowrap } .right { text-align: right }
details { border: 1px solid var(--line); border-radius: 6px; margin: .3rem 0; padding: .3rem .6rem }
summary { cursor: pointer } details[open] > summary { margin-bottom: .4rem } ol { padding-left: 1.4rem }
li { margin: .6rem 0 } svg { width: 100%; min-width: 36rem; height: auto; display: block } pre { overflow-x: auto }
.figure { background: var(--soft); border-radius: 6px; padding: .3rem; margin: .4rem 0; overflow-x: auto }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .4rem 0 } dt { color: var(--dim) }
dd { margin: 0 }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """Give a whole document without a link to anything outside of it."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}{policy}\n<title>{text(title)}</title>\n'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>{text(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def text(value: object) -> str:
    """Escape a text; control characters are shown and not sent."""
    return escape(printable(str(value)))


def table(part: Table) -> str:
    """Give a table, which scrolls by itself where the page is narrow."""
    title = f"<h2>{text(part.title)}</h2>" if part.title else ""
    head = "".join(_cell("th", name, index in part.right) for index, name in enumerate(part.columns))
    rows = "".join(
        f"<tr>{''.join(_cell('td', cell, index in part.right) for index, cell in enumerate(row))}</tr>\n"
        for row in part.rows
    )
    note = f'<p class="dim">{text(part.note)}</p>' if part.note else ""
    body = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>'
    return f"{title}{body if part.rows else ''}{note}"


def _cell(tag: str, value: str, is_right: bool) -> str:
    mark = ' class="right"' if is_right else ""
    return f"<{tag}{mark}>{text(value)}</{tag}>"


def pairs(rows: Sequence[tuple[str, object]]) -> str:
    """Give names with values; those without a value are left out."""
    return f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in rows if value != '')}</dl>"
