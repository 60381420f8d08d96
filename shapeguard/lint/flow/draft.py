"""Fixes as they are thought of, on nodes; they become text edits when the places of the nodes are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import libcst as cst

from shapeguard.core.finding import Edit, Fix
from shapeguard.lint.flow.spans import Places

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


# Stands between two new arguments until it is known whether each gets a line of its own.
_BETWEEN = "\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of the text around a node."""

    how: Literal["replace", "add-argument", "drop-method", "drop-statement", "add-entry", "append"]
    node: cst.CSTNode
    text: str = ""
    last: cst.CSTNode | None = None
    """The last argument or entry, where one is added; the receiver, where a method call is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A fix before its edits are known."""

    message: str
    changes: tuple[Change, ...] = ()
    safe: bool = False
    needs: str = ""

    def nodes(self) -> Iterable[cst.CSTNode]:
        """Give the nodes whose places the edits need."""
        for change in self.changes:
            yield change.node
            if change.last is not None:
                yield change.last

    def fix(self, places: Places) -> Fix | None:
        """Give the fix with its edits; None where a place cannot be edited."""
        edits: list[Edit] = []
        for change in self.changes if not self.needs else ():
            made = _edit(change, places)
            if made is None:
                return None
            edits.append(made)
        return Fix(message=self.message, edits=tuple(edits), safe=self.safe, needs=self.needs)


def replace(node: cst.CSTNode, text: str) -> Change:
    """Write the text in place of the node."""
    return Change(how="replace", node=node, text=text)


def append(node: cst.CSTNode, text: str) -> Change:
    """Write the text right after the node."""
    return Change(how="append", node=node, text=text)


def add_arguments(call: cst.Call, names: Sequence[tuple[str, str]]) -> Change:
    """Add keyword arguments after the last argument of the call."""
    last = call.args[-1] if call.args else None
    text = _BETWEEN.join(f"{name}={value}" for name, value in names)
    return Change(how="add-argument", node=call, text=text, last=last)


def add_entries(node: cst.Dict, entries: Sequence[tuple[str, str]]) -> Change:
    """Add entries after the last one of a dict literal."""
    last = node.elements[-1] if node.elements else None
    text = _BETWEEN.join(f'"{key}": {value}' for key, value in entries)
    return Change(how="add-entry", node=node, text=text, last=last)


def drop_method(call: cst.Call) -> Change:
    """Take `.method(...)` off its receiver."""
    assert isinstance(call.func, cst.Attribute)
    return Change(how="drop-method", node=call, last=call.func.attr)


def _edit(change: Change, places: Places) -> Edit | None:
    if change.node not in places.offsets or (change.last is not None and change.last not in places.offsets):
        return None
    start, end = places.offsets[change.node]
    text = change.text
    if change.how in ("add-argument", "add-entry"):
        if change.last is None:
            start = end = end - 1
            text = text.replace(_BETWEEN, ", ")
        else:
            start, end = _after(change, places)
            separator = _separator(change, places)
            text = separator + text.replace(_BETWEEN, separator)
    elif change.how == "drop-method":
        assert change.last is not None
        # Back over the dot, and over the line break before it in a chain of calls.
        head = places.source[: places.offsets[change.last][0]].rstrip()
        if not head.endswith("."):
            return None
        bare = head[:-1].rstrip()
        if "#" in places.source[len(bare) : end]:
            return None
        start = len(bare)
    elif change.how == "append":
        start = end
    elif change.how == "drop-statement":
        start, end = _whole_lines(places.source, start, end)
    return Edit(start=places.byte(start), end=places.byte(end), text=text)


def _after(change: Change, places: Places) -> tuple[int, int]:
    assert change.last is not None
    end = places.offsets[change.last][1]
    # The place of an argument may include its comma and the blanks after it.
    piece = places.source[places.offsets[change.last][0] : end].rstrip()
    if piece.endswith(","):
        piece = piece[:-1].rstrip()
    end = places.offsets[change.last][0] + len(piece)
    return end, end


def _separator(change: Change, places: Places) -> str:
    """Give ", ", or a comma and a new line where each argument has a line of its own."""
    assert change.last is not None
    start = places.offsets[change.last][0]
    line_start = max(places.source.rfind("\n", 0, start), places.source.rfind("\r", 0, start)) + 1
    before = places.source[line_start:start]
    if before.strip() or line_start <= places.offsets[change.node][0]:
        return ", "
    newline = "\r\n" if places.source[:line_start].endswith("\r\n") else "\n"
    return f",{newline}{before}"


def _whole_lines(source: str, start: int, end: int) -> tuple[int, int]:
    line_start = source.rfind("\n", 0, start) + 1
    line_end = source.find("\n", end)
    line_end = len(source) if line_end < 0 else line_end + 1
    if source[line_start:start].strip():
        return start, end
    rest = source[end:line_end]
    if rest.strip().startswith("#"):
        # The comment stays, in the place of the statement.
        return start, end + len(rest) - len(rest.lstrip())
    return (start, end) if rest.strip() else (line_start, line_end)


class Fixes:
    """Makes the usual fixes for the rules, which never see libcst."""

    def replace(self, node: cst.CSTNode, text: str, message: str) -> Draft:
        """Write the text in place of the node."""
        return Draft(message=message, changes=(replace(node, text),))

    def text(self, node: cst.CSTNode, text: str, message: str) -> Draft | None:
        """Write the text into a string literal, with its quotes kept; None where the node is none."""
        if not isinstance(node, cst.SimpleString):
            return None
        return self.replace(node, f"{node.quote}{text}{node.quote}", message)

    def set_arguments(self, call: Invocation, wanted: Sequence[tuple[str, str]], message: str) -> Draft | None:
        """Give the call these keyword arguments: literals that are there change, missing ones are added."""
        changes: list[Change] = []
        missing: list[tuple[str, str]] = []
        for name, value in wanted:
            given = call.argument(name)
            if not given:
                missing.append((name, value))
            elif len(given) == 1 and is_literal(given[0]):
                changes.append(replace(given[0], value))
            else:
                return None
        if missing:
            if any(isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar for arg in call.node.args):
                return None
            if call.node.func is call.func or call.open or call.is_bound:
                changes.append(add_arguments(call.node, missing))
            elif isinstance(literal := _dict_of(call), cst.Dict):
                changes.append(add_entries(literal, missing))
            elif isinstance(literal, cst.Call):
                changes.append(add_arguments(literal, missing))
            else:
                return None
        return Draft(message=message, changes=tuple(changes))

    def pad_rows(self, call: Invocation, length: int) -> Draft | None:
        """Have `pad_sequence` pad to the length: a row of that length goes in, and what is too much is cut off."""
        rows, batch_first = call.positional(0), call.constant("batch_first", 1, default=False)
        if len(rows) != 1 or not isinstance(batch_first, bool) or not isinstance(rows[0], cst.Name):
            return None
        if rows[0].lpar or call.node.func is not call.func:
            return None
        name, cut = rows[0].value, f"[:-1, :{length}]" if batch_first else f"[:{length}, :-1]"
        padded = f"[*{name}, {name}[0].new_zeros({length}, *{name}[0].shape[1:])]"
        changes = (replace(rows[0], padded), append(call.node, cut))
        return Draft(message=f"pad to {length}", changes=changes)

    def needs(self, message: str, needs: str) -> Draft:
        """Say what the user must give first."""
        return Draft(message=message, needs=needs)

    def drop_move(self, node: cst.Call) -> Draft | None:
        """Take `.to(device)` off its receiver."""
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in ("to", "cuda"):
            return None
        return Draft(message="leave the inputs on the CPU", changes=(drop_method(node),))

    def drop_statement(self, node: cst.CSTNode, message: str) -> Draft:
        """Delete the statement."""
        return Draft(message=message, changes=(Change(how="drop-statement", node=node),))


def is_literal(node: cst.CSTNode) -> bool:
    """Whether the node is a constant as it is written."""
    words = isinstance(node, cst.Name) and node.value in ("True", "False", "None")
    return words or isinstance(node, (cst.SimpleString, cst.Integer, cst.Float))


def _dict_of(call: Invocation) -> cst.CSTNode | None:
    """Give the dict literal or the `dict(...)` that holds the last keyword arguments of a call made elsewhere."""
    if not call.args or call.args[-1].star != "**":
        return None
    values = [value.node for value in call.flow.values(call.args[-1].value)]
    if len(values) != 1:
        return None
    node = values[0]
    named = isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict"
    return node if named or isinstance(node, cst.Dict) else None
