"""The form with `where` of a read through a mask, where the two are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.draft import Draft, is_literal, replace
from shapeguard.lint.flow.scope import path_of

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_MESSAGE = "use `torch.where`, which keeps the shape"
_ELEMENTWISE = frozenset({"isnan", "isinf", "isfinite"})


def where_form(flow: Flow, node: cst.Subscript) -> Draft | None:
    """Write `x[x > 0].sum()` and `.mean()` as sums over a `where`; only there it gives the same number."""
    reduction = flow.index.parent.get(node)
    call = flow.index.parent.get(reduction) if isinstance(reduction, cst.Attribute) else None
    if not isinstance(reduction, cst.Attribute) or not isinstance(call, cst.Call) or call.args:
        return None
    if call.func is not reduction or "torch" not in flow.imported:
        return None
    name, path = reduction.attr.value, path_of(node.value)
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if not path or not isinstance(index, cst.Index) or not _is_of(flow, index.value, path):
        return None
    mask, chosen = flow.source_of(index.value), f"torch.where({flow.source_of(index.value)}, {path}, 0)"
    if name == "sum":
        return Draft(message=_MESSAGE, changes=(replace(node, chosen),))
    if name == "mean":
        return Draft(message=_MESSAGE, changes=(replace(call, f"({chosen}.sum() / ({mask}).sum())"),))
    return None


def _is_of(flow: Flow, mask: cst.BaseExpression, path: str) -> bool:
    """Whether the mask is made of the tensor itself, element by element, so that it has its shape."""
    if isinstance(mask, cst.UnaryOperation) and isinstance(mask.operator, cst.BitInvert):
        return _is_of(flow, mask.expression, path)
    if isinstance(mask, cst.BinaryOperation) and isinstance(mask.operator, (cst.BitAnd, cst.BitOr)):
        return _is_of(flow, mask.left, path) and _is_of(flow, mask.right, path)
    if isinstance(mask, cst.Comparison):
        right = mask.comparisons[0].comparator
        right = right.expression if isinstance(right, cst.UnaryOperation) else right
        return len(mask.comparisons) == 1 and path_of(mask.left) == path and is_literal(right)
    if isinstance(mask, cst.Call) and path_of(mask.func).split(".")[-1] in _ELEMENTWISE:
        return [path_of(arg.value) for arg in mask.args] == [path] and path_of(mask.func).startswith("torch.")
    return False
