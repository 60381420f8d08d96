"""How a file turns text into rows: which tokenizer calls, padded to what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import libcst as cst

from shapeguard.lint.flow.index import text_of
from shapeguard.lint.flow.reach import ancestors
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import Value, method

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
    values = [value for node in given for value in call.flow.values(node)]
    if any(value.kind == "field" for value in values):
        return "unknown"
    found = {_strategy(value) for value in values}
    return found.pop() if len(found) == 1 else ("longest" if found == {"longest", "unknown"} else "unknown")


_WORDS: dict[str, Padding] = {"max_length": "fixed", "longest": "longest", "do_not_pad": "none"}


def _strategy(value: Value) -> Padding:
    if value.kind != "constant":
        # PaddingStrategy.LONGEST and the like are the same words in capitals.
        return _WORDS.get(value.name.split(".")[-1].lower(), "unknown")
    if isinstance(value.constant, str):
        return _WORDS.get(value.constant, "unknown")
    return "longest" if value.constant is True else "none"


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


def target_name(flow: Flow, node: cst.CSTNode, *, wide: bool) -> str:
    """Give the words around a call that say what it is for: its target, keys and function; if wide, its class too."""
    words = []
    for parent, child in ancestors(flow.index, node):
        if isinstance(parent, cst.Assign):
            words += [path_of(target.target) for target in parent.targets]
        elif isinstance(parent, cst.DictElement):
            words.append(getattr(parent.key, "value", ""))
        elif isinstance(parent, cst.Arg) and parent.keyword is not None and child is parent.value:
            words.append(parent.keyword.value)
        elif isinstance(parent, cst.FunctionDef) or (wide and isinstance(parent, cst.ClassDef)):
            words.append(parent.name.value)
    return " ".join(str(word) for word in words)


def is_one_row(flow: Flow, value: Value) -> bool:
    """Whether the value is one text, a list of one, or the item of what is annotated as texts."""
    if isinstance(value.constant, str) or isinstance(value.node, cst.FormattedString):
        return True
    if value.kind == "item":
        return any(_is_texts(flow, v.node) for v in flow.values(value.node))
    if value.kind == "parameter":
        return _annotation(flow, value.node) == "str"
    return isinstance(value.node, (cst.List, cst.Tuple)) and len(value.node.elements) == 1


def _is_texts(flow: Flow, node: cst.CSTNode) -> bool:
    return bool(
        re.fullmatch(r"(\w+\.)?(Sequence|List|list|Iterable|tuple|Tuple)\[str(, \.\.\.)?\]", _annotation(flow, node))
    )


def _annotation(flow: Flow, node: cst.CSTNode) -> str:
    if not isinstance(node, cst.Param) or node.annotation is None:
        return ""
    return flow.source_of(node.annotation.annotation)


def makes_ragged_rows(flow: Flow) -> bool:
    """Whether a `__getitem__` makes `input_ids` as long as its index says: `[… for _ in range(n[index])]`."""
    for node in flow.index.order:
        if isinstance(node, cst.DictElement) and text_of(node.key) == "input_ids" and _hangs_on_index(flow, node.value):
            return True
    return False


def _hangs_on_index(flow: Flow, node: cst.BaseExpression) -> bool:
    function = next((p for p, _ in ancestors(flow.index, node) if isinstance(p, cst.FunctionDef)), None)
    if function is None or function.name.value != "__getitem__" or not function.params.params:
        return False
    over = node.for_in.iter if isinstance(node, cst.ListComp) else None
    if not isinstance(over, cst.Call) or method(over) != "range":
        return False
    return function.params.params[-1].name.value in words_of(flow, over)


def words_of(flow: Flow, node: cst.CSTNode) -> set[str]:
    """Give the names in a small expression."""
    return set(re.findall(r"[\w.]+", flow.source_of(node)))


def is_constant(flow: Flow, value: Value) -> bool:
    """Whether the value is a constant, or a list of constants."""
    if value.kind == "constant":
        return True
    elements = value.node.elements if isinstance(value.node, (cst.List, cst.Tuple)) else ()
    inner = [each for element in elements for each in flow.values(element.value)]
    return len(inner) >= len(elements) > 0 and all(is_constant(flow, each) for each in inner)


def grows(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether the file adds elements to the list of this name."""
    path = path_of(node)
    added = (call for call in flow.index.calls if method(call) in ("append", "extend", "insert"))
    return bool(path) and any(isinstance(c.func, cst.Attribute) and path_of(c.func.value) == path for c in added)
