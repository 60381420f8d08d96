"""What belongs to a graph: forwards of modules, compiled functions, and what goes into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.reach import ancestors
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.flow import Flow

_MODULES = ("Module", "LightningModule", "PreTrainedModel")
_OFF_GRAPH = frozenset({"numpy", "cpu", "tolist", "item"})
_NEUTRAL = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "to", "expand", "t", "transpose", "detach"})
_LOGICAL = frozenset(
    {"eq", "ne", "gt", "lt", "ge", "le", "isin", "isnan", "isinf", "bool", "logical_and", "logical_or", "logical_not"}
)


def in_graph(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the node runs in the forward of a module or in a compiled function."""
    for parent, child in ancestors(flow.index, node):
        if isinstance(parent, cst.FunctionDef) and child is parent.body:
            return _is_forward(flow, parent) or _is_compiled(flow, parent)
    return False


def is_compiled(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the node runs in a compiled function."""
    for parent, child in ancestors(flow.index, node):
        if isinstance(parent, cst.FunctionDef) and child is parent.body:
            return _is_compiled(flow, parent)
    return False


def _is_forward(flow: Flow, function: cst.FunctionDef) -> bool:
    owner = flow.index.scope[function].node
    if function.name.value != "forward" or not isinstance(owner, cst.ClassDef):
        return False
    return any(name.split(".")[-1] in _MODULES for base in owner.bases for name in flow.names(base.value))


def _is_compiled(flow: Flow, function: cst.FunctionDef) -> bool:
    for decorator in function.decorators:
        target = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
        if "torch.compile" in flow.names(target):
            return True
    return function in flow.compiled


def compiled(flow: Flow) -> frozenset[cst.CSTNode]:
    """Give the functions of the file that `torch.compile(f)` is called on, and the forwards of such modules."""
    calls = [call for call in flow.calls if call.is_a("torch", "compile") and not call.open]
    given = [value for call in calls for value in call.values("model", 0)]
    functions = {value.node for value in given if value.kind == "function"}
    made = [v for g in given if isinstance(g.node, cst.Call) for v in flow.values(g.node.func) if v.kind == "class"]
    for value in made:
        bindings = flow.index.inner[value.node].bindings.get("forward", [])
        functions |= {binding.node for binding in bindings if binding.how == "def"}
    return frozenset(functions)


def calls_compiled(flow: Flow, call: Invocation) -> bool:
    """Whether the callee is what `torch.compile` gave, or a function under its decorator."""
    for value in flow.values(call.func):
        if isinstance(value.node, cst.FunctionDef) and _is_compiled(flow, value.node):
            return True
        if value.kind == "call" and isinstance(value.node, cst.Call) and "torch.compile" in flow.names(value.node.func):
            return True
    return False


def is_counter(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the expression is the count of a `range` or `enumerate` loop."""
    if not isinstance(node, cst.Name):
        return False
    for binding in flow.bindings(node):
        if binding.how == "item" and isinstance(binding.value, cst.Call):
            name = path_of(binding.value.func)
            if name in ("range", "tqdm.trange", "trange") or (name == "enumerate" and binding.index == 0):
                return _is_loop_variable(flow, binding.node, name)
    return _is_counted_up(flow, node)


def _is_counted_up(flow: Flow, node: cst.Name) -> bool:
    """Whether a number is made larger by a number in the loop that the node stands in: `position += 1`."""
    found = [binding for binding in flow.bindings(node) if binding.how == "augment"]
    steps = [flow.only(binding.value) for binding in found if binding.value is not None]
    if not steps or not all(isinstance(step, int) for step in steps):
        return False
    begins = [binding.value for binding in flow.bindings(node) if binding.how == "assign" and binding.value is not None]
    if not begins or not all(isinstance(flow.only(value), int) for value in begins):
        return False
    loops = {parent for parent, _ in ancestors(flow.index, node) if isinstance(parent, (cst.For, cst.While))}
    around = {parent for binding in found for parent, _ in ancestors(flow.index, binding.node)}
    return bool(loops & around)


def _is_loop_variable(flow: Flow, target: cst.CSTNode, name: str) -> bool:
    # `for pair in enumerate(...)` binds a pair, not a count.
    parent = flow.index.parent.get(target)
    return name != "enumerate" or isinstance(parent, cst.Element)


def is_cut_by_counter(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the expression is `x[:, :i]` with a loop's count."""
    if not isinstance(node, cst.Subscript):
        return False
    for element in node.slice:
        if isinstance(element.slice, cst.Slice):
            ends = [element.slice.lower, element.slice.upper]
            counted = [end is not None and _counts(flow, end) for end in ends]
            # A window of one width, `x[i : i + 8]`, has one length.
            if counted[0] != counted[1]:
                return True
    return False


def _counts(flow: Flow, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _counts(flow, node.left) or _counts(flow, node.right)
    return is_counter(flow, node)


def is_masked_read(flow: Flow, node: cst.Subscript) -> bool:
    """Whether the subscript reads through a boolean tensor."""
    parent = flow.index.parent.get(node)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del)) and getattr(parent, "value", None) is not node:
        return False
    if _off_graph(flow, node.value):
        return False
    return any(isinstance(e.slice, cst.Index) and is_mask(flow, e.slice.value) for e in node.slice)


def is_mask(flow: Flow, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether the expression is a boolean tensor."""
    if depth > 6:
        return False
    if isinstance(node, cst.Comparison):
        comparison = node.comparisons[0]
        if isinstance(comparison.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)):
            return False
        return len(node.comparisons) == 1 and (
            is_tensor(flow, node.left, depth + 1) or is_tensor(flow, comparison.comparator, depth + 1)
        )
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
        return is_mask(flow, node.expression, depth + 1)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        return is_mask(flow, node.left, depth + 1) or is_mask(flow, node.right, depth + 1)
    if isinstance(node, cst.Call):
        return _is_mask_call(flow, node, depth)
    if isinstance(node, (cst.Name, cst.Attribute)):
        values = flow.values(node)
        found = [value for value in values if value.node is not node]
        return (
            bool(found)
            and len(found) == len(values)
            and all(v.kind in ("other", "call") and is_mask(flow, v.node, depth + 1) for v in found)
        )
    return False


def _is_mask_call(flow: Flow, node: cst.Call, depth: int) -> bool:
    name = method(node)
    if "torch." + name in flow.names(node.func):
        return name in _LOGICAL
    if not isinstance(node.func, cst.Attribute):
        return False
    if name in _LOGICAL:
        return not _off_graph(flow, node.func.value)
    return name in _NEUTRAL and is_mask(flow, node.func.value, depth + 1)


def _off_graph(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the value has left torch, for numpy or Python."""
    for value in flow.values(node):
        text = value.node
        if isinstance(text, cst.Call):
            names = flow.names(text.func)
            if method(text) in _OFF_GRAPH or any(name.split(".")[0] in ("numpy", "pandas") for name in names):
                return True
    return False


def is_tensor(flow: Flow, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether the expression surely is a tensor: made by torch, a tensor's method, or an argument of a forward."""
    if depth > 6 or _off_graph(flow, node):
        return False
    for value in flow.values(node):
        if value.kind == "parameter" and isinstance(value.node, cst.Param):
            return _is_tensor_parameter(flow, value.node)
        if isinstance(value.node, cst.Comparison) and is_mask(flow, value.node, depth + 1):
            return True
        if isinstance(value.node, cst.Call):
            names = flow.names(value.node.func)
            if any(name.startswith("torch.") and "." not in name[6:] for name in names):
                return True
            if isinstance(value.node.func, cst.Attribute) and method(value.node) in _TENSOR_METHODS:
                return is_tensor(flow, value.node.func.value, depth + 1)
        elif isinstance(value.node, cst.Subscript) and value.node is node:
            return is_tensor(flow, value.node.value, depth + 1) and not path_of(value.node.value).endswith(".shape")
    return False


_TENSOR_METHODS = frozenset(
    [
        "argmax",
        "sum",
        "cumsum",
        "float",
        "long",
        "int",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "max",
        "min",
        "abs",
        "softmax",
        "sigmoid",
        "detach",
        "clone",
        "to",
        "bool",
        "transpose",
        "permute",
        "flatten",
        "contiguous",
        "type",
        "masked_fill",
        "any",
        "all",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
    ]
)
_TEXT = ("input_ids", "labels", "mask", "hidden", "logits", "tensor", "targets", "embeds", "states")

_SHORT = frozenset({"x", "y", "z", "h", "input", "inputs", "target", "label", "scores", "probs", "preds"})


def _is_tensor_parameter(flow: Flow, param: cst.Param) -> bool:
    if param.annotation is not None:
        return "Tensor" in flow.source_of(param.annotation.annotation)
    if param.default is not None and not (isinstance(param.default, cst.Name) and param.default.value == "None"):
        return False
    function = flow.index.parent.get(flow.index.parent.get(param, param), param)
    if not isinstance(function, cst.FunctionDef) or not (
        function.name.value == "forward" or _is_compiled(flow, function)
    ):
        return False
    name = param.name.value
    return name in _SHORT or any(word in name for word in _TEXT)
