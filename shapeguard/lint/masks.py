"""Whether a file may read through a mask: a subscript by a boolean tensor, seen on Python's own tree.

Looks once at each node, in the order of a walk that comes to a node before it comes to what is in it.
"""

from __future__ import annotations

import ast

_LOGICAL = frozenset({"eq", "ne", "gt", "lt", "ge", "le", "isin", "isnan", "isinf", "bool"})
_NEUTRAL = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "to", "expand", "t", "transpose", "detach"})
_ASIDE = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Masks:
    """What a walk has met of masks and of subscripts."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        """Names that may hold a mask, were there one: parameters, and what is assigned no plain number or text."""
        self._asked: set[int] = set()
        """Comparisons that only decide something."""
        self._subscripts: set[str] = set()
        self._is_direct = False
        self._is_call_of_mask = False
        self._has_mask = False

    @property
    def are_read(self) -> bool:
        """Whether some subscript may be one by a mask."""
        is_named = self._is_call_of_mask or not self._subscripts.isdisjoint(self.made)
        return self._is_direct or (self._has_mask and is_named)

    def asks(self, node: ast.If | ast.While | ast.Assert | ast.IfExp | ast.BoolOp | ast.comprehension) -> None:
        """A condition: no comparison in it is a mask."""
        if isinstance(node, ast.BoolOp):
            self._asked.update(map(id, node.values))
        elif isinstance(node, ast.comprehension):
            self._asked.update(map(id, node.ifs))
        else:
            self._asked.add(id(node.test))

    def compare(self, node: ast.Compare) -> None:
        """A comparison is a mask, unless it decides something."""
        if id(node) not in self._asked and len(node.ops) == 1 and not isinstance(node.ops[0], _ASIDE):
            self._has_mask = True

    def operation(self, node: ast.UnaryOp | ast.BinOp) -> None:
        """`not x` asks; what `~`, `&` and `|` join may be a mask only if there is a comparison somewhere."""
        if isinstance(node.op, ast.Not):
            self._asked.add(id(node.operand))

    def call(self, node: ast.Call, last: str) -> None:
        """`x.eq(y)` and `torch.eq(x, y)` are masks."""
        self._has_mask |= _is_logical(last)

    def assign(self, target: ast.expr, value: ast.expr | None) -> None:
        """Note the names that may hold a mask."""
        if isinstance(value, (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set)):
            return
        for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
            self.made.add(_last(each))

    def subscript(self, node: ast.Subscript) -> None:
        """Note what a subscript reads by."""
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,):
            if isinstance(part, (ast.Name, ast.Attribute)):
                self._subscripts.add(_last(part))
            elif isinstance(part, ast.Call):
                self._is_direct |= _is_logical(_last(part.func))
                self._is_call_of_mask |= _last(part.func) in _NEUTRAL
            elif isinstance(part, ast.Compare):
                self._is_direct = True
            elif isinstance(part, ast.UnaryOp):
                self._is_direct |= isinstance(part.op, ast.Invert)
            elif isinstance(part, ast.BinOp):
                self._is_direct |= isinstance(part.op, (ast.BitAnd, ast.BitOr))


def _is_logical(name: str) -> bool:
    return name in _LOGICAL or name.startswith("logical_")


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
