"""How a file turns text into rows: which tokenizer calls, padded to what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import libcst as cst

from shapeguard.lint.flow.reach import ancestors
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import method

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.flow import Flow

Padding = Literal["fixed", "longest", "none", "unknown"]

_ENCODES = frozenset({"__call__", "encode", "encode_plus", "batch_encode_plus", "apply_chat_template"})
_PACKS = re.compile(r"group_text|pack|concat|chain|block|chunk|ConstantLength|overflow", re.IGNORECASE)
_COLLATES = re.compile(r"collat", re.IGNORECASE)


def padding(call: Invocation) -> Padding:
    """Give what a call of a tokenizer, or a collator, pads to."""
    if _multiple_is_length(call):
        return "fixed"
    given = call.argument("padding")
    if not given:
        return "none" if call.is_complete else "unknown"
    found = {_strategy(call.flow, value) for node in given for value in call.flow.values(node)}
    return found.pop() if len(found) == 1 else ("longest" if found == {"longest", "unknown"} else "unknown")


def _strategy(flow: Flow, value: object) -> Padding:
    constant, name = getattr(value, "constant", None), getattr(value, "name", "")
    kind = getattr(value, "kind", "")
    if kind == "constant":
        known: dict[object, Padding] = {"max_length": "fixed", "longest": "longest", "do_not_pad": "none"}
        if constant is True:
            return "longest"
        return "none" if constant in (False, None) else known.get(constant, "unknown")
    last = name.split(".")[-1]
    return {"MAX_LENGTH": "fixed", "LONGEST": "longest", "DO_NOT_PAD": "none"}.get(last, "unknown")  # type: ignore[return-value]


def _multiple_is_length(call: Invocation) -> bool:
    """Whether rows are cut to a length and padded to a multiple that is this length."""
    multiple, length = call.constant("pad_to_multiple_of"), call.constant("max_length")
    lengths = [each.constant("max_length") for each in call.flow.encodings] if length is ... else [length]
    return isinstance(multiple, int) and multiple > 1 and bool(lengths) and all(each == multiple for each in lengths)


def is_tokenizer(call: Invocation) -> bool:
    """Whether the call turns text into tokens."""
    flow = call.flow
    kinds = flow.kinds(call.func)
    if kinds & {"tokenizer", "tokenizer?"}:
        return True
    if call.receiver is None or call.method not in _ENCODES:
        return False
    return bool(flow.kinds(call.receiver) & {"tokenizer", "tokenizer?"})


def encodings(flow: Flow) -> list[Invocation]:
    """Give the calls that turn text into tokens, but for the prompts of a `generate()`."""
    prompts = {node for generation in flow.generations for _, node in generation.trace.producers}
    return [call for call in flow.calls if not call.open and call.node not in prompts and is_tokenizer(call)]


def packs(flow: Flow) -> bool:
    """Whether the file seems to cut a stream of tokens into blocks, so that rows need no padding."""
    return any(isinstance(node, cst.Name) and _PACKS.search(node.value) for node in flow.index.order)


def collating(flow: Flow, node: cst.CSTNode) -> cst.CSTNode | None:
    """Give the function around the node if it makes batches: by its name, or as someone's `collate_fn`."""
    for parent, _ in ancestors(flow.index, node):
        if isinstance(parent, cst.FunctionDef):
            return parent if _collates(flow, parent) else None
        if isinstance(parent, cst.Lambda) and _handed_over(flow, parent):
            return parent
    return None


def _collates(flow: Flow, function: cst.FunctionDef) -> bool:
    scope = flow.index.scope[function]
    owner = scope.node.name.value if isinstance(scope.node, cst.ClassDef) else ""
    name = f"{owner if function.name.value in ('__call__', 'torch_call') else ''} {function.name.value}"
    return bool(_COLLATES.search(name)) or _handed_over(flow, function)


def _handed_over(flow: Flow, function: cst.CSTNode) -> bool:
    return any(value.node is function for node in _collators(flow) for value in flow.values(node))


def _collators(flow: Flow) -> Iterator[cst.BaseExpression]:
    for call in flow.index.calls:
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value in ("collate_fn", "data_collator"):
                yield arg.value


def pads_again(flow: Flow, function: cst.CSTNode) -> bool:
    """Whether the function also pads to a length of its own, or cuts rows to one before."""
    for call in flow.index.calls:
        if method(call) in ("pad", "full", "new_full", "new_zeros", "zeros") and flow.is_within(call, function):
            return True
    return False


def target_name(flow: Flow, node: cst.CSTNode) -> str:
    """Give the words around a call that say what it is for: its target, keys, function and class."""
    words = []
    for parent, child in ancestors(flow.index, node):
        if isinstance(parent, cst.Assign):
            words += [path_of(target.target) for target in parent.targets]
        elif isinstance(parent, cst.DictElement):
            words.append(getattr(parent.key, "value", ""))
        elif isinstance(parent, cst.Arg) and parent.keyword is not None and child is parent.value:
            words.append(parent.keyword.value)
        elif isinstance(parent, (cst.FunctionDef, cst.ClassDef)):
            words.append(parent.name.value)
    return " ".join(str(word) for word in words)
