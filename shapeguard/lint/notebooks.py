"""Notebooks: code cells as one Python text, and edits written back into the JSON.

Only the `source` of a changed cell is written; outputs, metadata and the layout of the JSON stay as they are. IPython's
magics are replaced by expressions of the same length, so that offsets hold.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from shapeguard.core.finding import Edit, Finding, Problem, Span
from shapeguard.lint.magics import plain_python, syntax_error
from shapeguard.lint.text import UnreadableError
from shapeguard.lint.visit import Context, SourceError, check_source

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A code cell that is Python."""

    number: int
    """Among the code cells, from 1."""
    source: str
    code: str
    """The source without magics, as long as the source."""
    start: int
    """Offset of `source` in the raw JSON."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """A notebook's code as one text, and the way back."""

    raw: str
    cells: tuple[Cell, ...]
    broken: tuple[tuple[int, int, str], ...] = ()
    """Cells that do not parse: number, line in the cell, message. Their code is not in the text."""

    @property
    def text(self) -> str:
        """The code of all cells, each on lines of its own."""
        return "".join(_ended(cell.code) for cell in self.cells)

    def _starts(self) -> tuple[list[int], list[int]]:
        offsets, lines = [0], [0]
        for cell in self.cells:
            code = _ended(cell.code)
            offsets.append(offsets[-1] + len(code.encode("utf-8", "surrogatepass")))
            lines.append(lines[-1] + len(re.findall(r"\r\n|\r|\n", code)))
        return offsets, lines

    def in_cell(self, finding: Finding) -> Finding:
        """Move a finding of the text into its cell; edits must lie in the same cell, else the fix is left out."""
        offsets, lines = self._starts()
        index = max(0, bisect_right(lines, finding.span.line - 1, hi=len(self.cells)) - 1)
        base, size = offsets[index], offsets[index + 1] - offsets[index]
        span = finding.span
        moved = Span(
            start=span.start - base,
            end=min(span.end - base, size),
            line=span.line - lines[index],
            column=span.column,
            end_line=span.end_line - lines[index],
            end_column=span.end_column,
        )
        fix = finding.fix
        if fix is not None:
            edits = tuple(replace(edit, start=edit.start - base, end=edit.end - base) for edit in fix.edits)
            inside = all(0 <= edit.start <= edit.end <= size for edit in edits)
            fix = replace(fix, edits=edits if inside else ())
        return replace(finding, span=moved, fix=fix, cell=self.cells[index].number)

    def with_edits(self, edits: list[Edit]) -> str:
        """Give the raw JSON after edits of the text; magics come back as they were."""
        offsets, _ = self._starts()
        pieces = []
        position = 0
        for index, cell in enumerate(self.cells):
            mine = [
                replace(edit, start=edit.start - offsets[index], end=edit.end - offsets[index])
                for edit in edits
                if offsets[index] <= edit.start and edit.end <= offsets[index + 1] and edit.start < offsets[index + 1]
            ]
            if not mine:
                continue
            changed = _apply(cell.source, mine)
            pieces += [self.raw[position : cell.start], _rendered(self.raw[cell.start : cell.end], changed)]
            position = cell.end
        return "".join([*pieces, self.raw[position:]])

    def problems(self, path: str) -> list[Problem]:
        """The cells that could not be parsed."""
        return [Problem(path=path, line=line, message=f"cell {number}: {text}") for number, line, text in self.broken]


def read_notebook(raw: str) -> Notebook | None:
    """Read a notebook's code cells; None if its language is not Python, `UnreadableError` if it is no notebook."""
    try:
        document = json.loads(raw)
    except RecursionError:
        raise UnreadableError("is nested too deeply for JSON") from None
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        raise UnreadableError(f"is no JSON: {getattr(error, 'msg', error)}", line) from None
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        if isinstance(document, dict) and "worksheets" in document:
            raise UnreadableError("is a notebook of format 3; upgrade it with `jupyter nbconvert --to notebook`")
        raise UnreadableError("is no notebook: it has no list of cells")
    if _language(document) != "python":
        return None
    cells: list[Cell] = []
    broken = []
    number = 0
    for cell, (start, end) in zip(document["cells"], _sources(raw), strict=True):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        number += 1
        source = _source(cell.get("source"))
        code = plain_python(source) if source is not None and start >= 0 else None
        if source is None or code is None:
            continue
        if (wrong := _error(code)) is not None:
            broken.append((number, wrong.lineno or 0, wrong.msg))
            continue
        cells.append(Cell(number=number, source=source, code=code, start=start, end=end))
    return Notebook(raw=raw, cells=tuple(cells), broken=tuple(broken))


def _language(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(key)
        if isinstance(part, dict) and isinstance(part.get(name), str):
            return "python" if part[name].lower().startswith(("python", "ipython")) else part[name]
    return "python"


def _source(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return None


def _sources(raw: str) -> Iterator[tuple[int, int]]:
    """Where the `source` of each cell stands in the JSON; (-1, -1) for a cell without one."""
    cells = None
    for key, start, _ in _members(raw, _skip(raw, 0)):
        if key == "cells":
            cells = start
    assert cells is not None
    for start, _ in _items(raw, cells):
        place = (-1, -1)
        if raw[start] == "{":
            for key, begin, end in _members(raw, start):
                if key == "source":
                    place = (begin, end)
        yield place


def _members(raw: str, position: int) -> Iterator[tuple[str, int, int]]:
    """The members of the object at the position: key, and where the value begins and ends."""
    position = _skip(raw, position + 1)
    while raw[position] != "}":
        key, position = _DECODER.raw_decode(raw, position)
        start = _skip(raw, _skip(raw, position) + 1)
        _, end = _DECODER.raw_decode(raw, start)
        yield key, start, end
        position = _skip(raw, end)
        position = _skip(raw, position + 1) if raw[position] == "," else position


def _items(raw: str, position: int) -> Iterator[tuple[int, int]]:
    position = _skip(raw, position + 1)
    while raw[position] != "]":
        _, end = _DECODER.raw_decode(raw, position)
        yield position, end
        position = _skip(raw, end)
        position = _skip(raw, position + 1) if raw[position] == "," else position


def _skip(raw: str, position: int) -> int:
    match = _BLANK.match(raw, position)
    assert match is not None
    return match.end()


def _rendered(old: str, source: str) -> str:
    """Write a cell's source as it was written: a string, or a list whose unchanged lines keep their bytes."""
    is_ascii = old.isascii()
    if not old.startswith("["):
        return json.dumps(source, ensure_ascii=is_ascii)
    places = list(_items(old, 0))
    before = [_DECODER.raw_decode(old, start)[0] for start, _ in places]
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    head = 0
    while head < min(len(before), len(lines)) and before[head] == lines[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(lines)) - head and before[-1 - tail] == lines[-1 - tail]:
        tail += 1
    written = [old[start:end] for start, end in places[:head]]
    written += [json.dumps(line, ensure_ascii=is_ascii) for line in lines[head : len(lines) - tail]]
    written += [old[start:end] for start, end in places[len(places) - tail :]] if tail else []
    between = old[places[0][1] : places[1][0]] if len(places) > 1 else "," + old[1 : places[0][0]]
    return old[: places[0][0]] + between.join(written) + old[places[-1][1] :]


def _apply(source: str, edits: list[Edit]) -> str:
    data = source.encode("utf-8", "surrogatepass")
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data.decode("utf-8", "surrogatepass")


def _ended(code: str) -> str:
    return code if code.endswith(("\n", "\r")) else code + "\n"


def _error(code: str) -> SyntaxError | None:
    if not code.isascii() and any("\ud800" <= character <= "\udfff" for character in code):
        return SyntaxError("holds half of a surrogate pair")
    wrong = syntax_error(code)
    return wrong if wrong is not None and not _is_newer_python(code) else None


def _is_newer_python(code: str) -> bool:
    """Whether libcst knows what this Python does not."""
    try:
        check_source(code, rules=(), context=Context())
    except (SourceError, RecursionError):
        return False
    return True
