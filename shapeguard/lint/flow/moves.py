"""Where the inputs of a `generate()` come from, and whether they are moved to a device on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow import objects
from shapeguard.lint.flow.index import subscript_key
from shapeguard.lint.flow.scope import Binding, path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.flow import Flow

_DTYPES = frozenset(
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "half",
        "float",
        "double",
        "long",
        "int",
        "int32",
        "int64",
        "bool",
        "dtype",
        "uint8",
    ]
)
_ENCODES = frozenset({"apply_chat_template", "encode", "encode_plus", "batch_encode_plus", "pad", "__call__"})
_KINDS = {"tokenizer": "tokenizer", "tokenizer?": "tokenizer", "processor": "processor", "processor?": "processor"}
_PICTURES = frozenset({"images", "videos", "audio", "audios"})
_GATHER = frozenset({"cat", "concat", "stack", "tensor", "as_tensor", "LongTensor", "dict", "BatchEncoding", "list"})


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """One move to a device that an input goes through."""

    node: cst.Call
    """The move, or the call of the helper that holds it."""
    key: str
    """The input that is moved by itself, "" where a whole batch is."""
    casts: bool = False
    in_place: bool = False
    through: cst.Call | None = None
    """The move inside a helper."""


class Trace:
    """Follows inputs back to what made them."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.moves: list[Move] = []
        self.producers: list[tuple[str, cst.Call]] = []
        """("tokenizer" | "processor", the call) that made an input."""
        self.carriers: set[tuple[cst.CSTNode, str]] = set()
        """Names that hold a moved input, with the scope's node."""
        self.parameters: set[str] = set()
        self._seen: set[tuple[cst.CSTNode, str]] = set()
        self._helpers: list[tuple[cst.Call, cst.CSTNode]] = []

    def follow(self, node: cst.CSTNode, key: str = "") -> bool:
        """Follow an expression; whether it has been moved."""
        if (node, key) in self._seen or len(self._seen) > 400:
            return False
        self._seen.add((node, key))
        if isinstance(node, cst.Call):
            return self._call(node, key)
        if isinstance(node, cst.Subscript):
            return self._any([node.value], subscript_key(node) or key)
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self._path(node, key)
        return self._any(self._parts(node, key), key)

    def _any(self, nodes: Iterable[cst.CSTNode], key: str) -> bool:
        # All are followed, not only up to the first that has been moved.
        found = [self.follow(node, key) for node in nodes]
        return any(found)

    def _parts(self, node: cst.CSTNode, key: str) -> Iterable[cst.CSTNode]:
        if isinstance(node, cst.IfExp):
            return [branch for branch in (node.body, node.orelse) if not self.flow.never_on_neuron(branch)]
        if isinstance(node, cst.Await):
            return [node.expression]
        if isinstance(node, cst.NamedExpr):
            return [node.value]
        if isinstance(node, cst.Dict):
            entries = self.flow.mapping(node).entries
            inner: list[cst.BaseExpression] = [element.value for element in node.elements]
            return entries.get(key, inner)
        if isinstance(node, cst.DictComp):
            return [node.value]
        if isinstance(node, (cst.List, cst.Tuple)):
            return [element.value for element in node.elements]
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return [node.elt]
        return []

    def _path(self, node: cst.Name | cst.Attribute, key: str) -> bool:
        bindings = self.flow.bindings(node)
        if not bindings and isinstance(node, cst.Attribute):
            return self.follow(node.value, node.attr.value if node.attr.value not in ("data", "T") else key)
        moved = [self._binding(binding, key) for binding in bindings]
        found = self._changed(node, bindings, key) or any(moved)
        if found:
            self.carriers.add((self._home(node), path_of(node)))
        return found

    def _home(self, node: cst.CSTNode) -> cst.CSTNode:
        path = path_of(node)
        for scope in self.flow.scopes(node, path):
            if path in scope.bindings:
                return scope.node
        return node

    def _binding(self, binding: Binding, key: str) -> bool:
        if binding.how == "parameter" and isinstance(binding.node, cst.Param):
            self.parameters.add(binding.node.name.value)
            return self._any(self._passed(binding.node, key), key)
        return binding.value is not None and self.follow(binding.value, key)

    def _passed(self, param: cst.Param, key: str) -> Sequence[cst.CSTNode]:
        function = objects.definition(self.flow, param)
        sites = self.flow.sites_of(function)
        if self._helpers and self._helpers[-1][1] is function:
            sites = [site for site in sites if site.node is self._helpers[-1][0]]
        if param.star == "**":
            own = {key} if key else {"input_ids", "inputs", "attention_mask", "inputs_embeds"}
            args = [arg for site in sites for arg in site.args]
            return [a.value for a in args if a.star == "**" or (a.keyword is not None and a.keyword.value in own)]
        return [arg for site in sites for arg in objects.passed_at(self.flow, site, function, param)]

    def _changed(self, node: cst.Name | cst.Attribute, bindings: Sequence[Binding], key: str) -> bool:
        moved = False
        for mutation in self.flow.mutations(node):
            if mutation.how == "moved" and isinstance(mutation.node, cst.Call):
                moved = self._in_place(mutation.node, bindings, key) or moved
            elif mutation.how == "set" and mutation.value is not None and key in ("", mutation.key or key):
                moved = self.follow(mutation.value, mutation.key or key) or moved
            elif mutation.how == "update":
                moved = self._any([arg.value for arg in mutation.args], key) or moved
        return moved

    def _in_place(self, node: cst.Call, bindings: Sequence[Binding], key: str) -> bool:
        """`batch.to(device)` as a statement moves a batch, and does nothing to a tensor."""
        batches = [b.value for b in bindings if b.how == "assign" and b.value is not None]
        if not batches or not all(self.is_batch(value) for value in batches) or not self._is_move(node):
            return False
        self._add(node, "", in_place=True)
        return True

    def is_batch(self, node: cst.CSTNode) -> bool:
        """Whether the expression is the `BatchEncoding` that a tokenizer or processor gives."""
        for value in self.flow.values(node):
            call = value.node
            if not isinstance(call, cst.Call) or not self._maker(call):
                return False
            if method(call) == "encode":
                return False
            if method(call) == "apply_chat_template" and "return_dict" not in self.flow.source_of(call):
                return False
            if "return_dict=False" in self.flow.source_of(call).replace(" ", ""):
                return False
        return True

    def _maker(self, node: cst.Call) -> str:
        """Give "tokenizer" or "processor" for a call that encodes text or pictures."""
        callees: list[cst.CSTNode] = [node.func]
        if isinstance(node.func, cst.Attribute) and method(node) in _ENCODES:
            callees.append(node.func.value)
        for value in self.flow.values(node.func):
            if value.kind == "partial" and isinstance(value.node, cst.Call) and value.node.args:
                callees.append(value.node.args[0].value)
        found = [_KINDS[kind] for callee in callees for kind in self.flow.kinds(callee) if kind in _KINDS]
        shows = any(arg.keyword is not None and arg.keyword.value in _PICTURES for arg in node.args)
        return found[0] if found else "processor" if shows else ""

    def _call(self, node: cst.Call, key: str) -> bool:
        last = method(node)
        if maker := self._maker(node):
            self.producers.append((maker, node))
            return False
        if isinstance(node.func, cst.Attribute) and last in ("to", "cuda", "to_device"):
            return self._moved(node, node.func.value, key)
        if last in ("send_to_device", "move_to_device", "to_device") and node.args:
            return self._moved(node, node.args[0].value, key)
        if self._through(node, key):
            return True
        if last in _GATHER:
            return self._any([arg.value for arg in node.args], key)
        if isinstance(node.func, cst.Attribute):
            return self.follow(node.func.value, key)
        return False

    def _moved(self, node: cst.Call, base: cst.CSTNode, key: str) -> bool:
        is_move = self._is_move(node)
        already = self.follow(base, key)
        if is_move:
            own = subscript_key(base) if isinstance(base, cst.Subscript) else None
            if isinstance(base, cst.Attribute):
                own = base.attr.value
            self._add(node, own or ("" if self.is_batch(base) else key))
        return is_move or already

    def _add(self, node: cst.Call, key: str, *, in_place: bool = False) -> None:
        casts = len([a for a in node.args if a.keyword is None]) > 1 or any(_is_dtype(arg) for arg in node.args)
        if self._helpers:
            self.moves.append(Move(self._helpers[0][0], key, casts, in_place, node))
        else:
            self.moves.append(Move(node, key, casts, in_place))

    def _is_move(self, node: cst.Call) -> bool:
        if method(node) == "cuda":
            return True
        args = [arg for arg in node.args if not _is_dtype(arg) and not (arg.keyword and arg.keyword.value != "device")]
        if method(node).endswith("to_device"):
            args = args[1:]
        return any(not is_cpu(self.flow, arg.value) for arg in args)

    def _through(self, node: cst.Call, key: str) -> bool:
        """Follow what a function of the file returns, with the arguments of this very call."""
        found = False
        for value in self.flow.values(node.func):
            scope = self.flow.index.inner.get(value.node) if value.kind == "function" else None
            if scope is None or len(self._helpers) > 3:
                continue
            self._helpers.append((node, value.node))
            found = self._any(self.flow.index.returns.get(scope, []), key) or found
            self._helpers.pop()
        return found


def _is_dtype(arg: cst.Arg) -> bool:
    last = path_of(arg.value).split(".")[-1]
    return (arg.keyword is not None and arg.keyword.value == "dtype") or last in _DTYPES or last.endswith("dtype")


def is_cpu(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the device surely is the CPU once branches for other devices are left out."""
    values = flow.values(node)
    for value in values:
        if isinstance(value.node, cst.Call) and method(value.node) == "device" and value.node.args:
            if not is_cpu(flow, value.node.args[0].value):
                return False
        elif value.constant != "cpu":
            return False
    return bool(values)
