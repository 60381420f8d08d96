"""Code that plainly never runs on Neuron: a branch for CUDA or the CPU only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import libcst as cst

from shapeguard.lint.flow.index import text_of
from shapeguard.lint.flow.reach import ancestors
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

OTHERS = frozenset({"cuda", "gpu", "mps", "xpu", "npu", "hpu", "rocm", "hip", "tpu", "cpu", "directml", "mlu", "musa"})
_VENDORS = OTHERS - {"cuda", "gpu", "cpu"} | {"gaudi", "habana", "ascend", "ipex"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_COUNTS = frozenset({"device_count", "is_available", "is_bf16_supported", "get_device_capability"})
_ASKING = frozenset(
    {"use", "has", "have", "is", "on", "with", "no", "not", "n", "available", "num", "count", "enabled"}
)
_LEAVING = (cst.Return, cst.Raise)


def never_on_neuron(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether conditions around or before the node leave only other devices."""
    for found, child in ancestors(flow.index, node):
        # By type, for speed: every call asks, and `isinstance` of libcst's abstract classes is slow.
        kind, parent = type(found), cast(Any, found)
        if kind is cst.If or kind is cst.IfExp:
            taken = child is parent.body
            if child is not parent.test and other_device(flow, parent.test, taken):
                return True
        elif kind is cst.IndentedBlock or kind is cst.Module:
            if _left_before(flow, parent.body, child):
                return True
        elif kind is cst.ClassDef or kind is cst.FunctionDef:
            if child is parent.body and _is_for_another(parent):
                return True
        elif kind is cst.BooleanOperation and _left_out(flow, parent, child):
            return True
    return False


def _is_for_another(definition: cst.ClassDef | cst.FunctionDef) -> bool:
    """Whether its name says that it serves another accelerator; what is called after CUDA may well be ported."""
    words = {word.lower() for word in _WORDS.findall(definition.name.value)}
    return not words.isdisjoint(_VENDORS) and "not" not in words and "no" not in words


def _left_out(flow: Flow, operation: cst.BooleanOperation, child: cst.CSTNode) -> bool:
    is_and = isinstance(operation.operator, cst.And)
    return child is operation.right and other_device(flow, operation.left, is_and)


def _left_before(flow: Flow, body: Sequence[cst.BaseStatement], child: cst.CSTNode) -> bool:
    for statement in body:
        if statement is child:
            return False
        kind = type(statement)
        if kind is not cst.If and kind is not cst.SimpleStatementLine:
            continue
        if isinstance(statement, cst.If) and statement.orelse is None and _leaves(statement.body):
            rest = (statement.test, False)
        elif isinstance(statement, cst.SimpleStatementLine) and type(statement.body[0]) is cst.Assert:
            rest = (statement.body[0].test, True)
        else:
            continue
        if other_device(flow, *rest):
            return True
    return False


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    if isinstance(last, cst.Expr) and isinstance(last.value, cst.Call):
        return path_of(last.value.func) in ("sys.exit", "exit", "quit", "os._exit", "pytest.skip")
    return isinstance(last, _LEAVING)


def other_device(flow: Flow, test: cst.BaseExpression, outcome: bool) -> bool:
    """Whether the test coming out so means that the device is not a Neuron one."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return other_device(flow, test.expression, not outcome)
    if isinstance(test, cst.BooleanOperation):
        both = isinstance(test.operator, cst.And) == outcome
        sides = (other_device(flow, side, outcome) for side in (test.left, test.right))
        return any(sides) if both else all(sides)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _comparison(flow, test, outcome)
    if isinstance(test, cst.Call):
        return _call(test, outcome)
    return _name(flow, test, outcome)


def _comparison(flow: Flow, test: cst.Comparison, outcome: bool) -> bool:
    operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
    if isinstance(operator, (cst.NotEqual, cst.NotIn, cst.IsNot)):
        outcome, operator = not outcome, cst.Equal()
    if isinstance(operator, (cst.GreaterThan, cst.GreaterThanEqual)):
        return outcome and isinstance(test.left, cst.Call) and _call(test.left, True)
    texts = [text for text in (text_of(test.left), text_of(right)) if text is not None]
    for constant in flow.constants(right) if not texts else ():
        texts += [constant] if isinstance(constant, str) else []
    device = "device" in flow.source_of(test).lower() or "backend" in flow.source_of(test).lower()
    words = {text.split(":")[0] for text in texts}
    if "neuron" in words or "xla" in words:
        return not outcome
    return outcome and bool(words & OTHERS) and (device or not words <= {"cpu"})


def _call(test: cst.Call, outcome: bool) -> bool:
    path = path_of(test.func).lower()
    parts = path.split(".")
    if "neuron" in path or "xla" in path:
        return not outcome
    if parts[-1] in _COUNTS or parts[-1].startswith("is_torch_"):
        return outcome and bool(OTHERS & {word for part in parts for word in part.split("_")})
    if method(test) == "startswith" and test.args:
        return outcome and (text_of(test.args[0].value) or "").split(":")[0] in OTHERS
    return False


def _name(flow: Flow, test: cst.BaseExpression, outcome: bool) -> bool:
    path = path_of(test)
    if not path:
        return False
    for binding in flow.bindings(test):
        value = binding.value if binding.how == "assign" else None
        # A call or comparison has no name of its own to follow, so that this cannot run in a circle.
        if isinstance(value, (cst.Call, cst.Comparison)) and other_device(flow, value, outcome):
            return True
    words = set(path.split(".")[-1].lower().split("_"))
    if words & {"no", "not", "disable", "without"}:
        outcome = not outcome
    return outcome and bool(words & OTHERS) and words <= OTHERS | _ASKING
