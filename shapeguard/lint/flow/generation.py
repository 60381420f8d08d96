"""A call of transformers' `generate()`: on what model, with which inputs and settings."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from shapeguard.lint.flow.kinds import MODELS, classify
from shapeguard.lint.flow.moves import Move, Trace, is_cpu
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.values import Value, method
from shapeguard.lint.rule import ONLY_TRANSFORMERS

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.flow import Flow

INPUTS = ("inputs", "input_ids", "attention_mask")
_ASSISTED = ("assistant_model", "prompt_lookup_num_tokens", "assistant_tokenizer", "custom_generate", "use_mtp")
_NOT_MODELS = (
    "foreign",
    "local",
    "local-model",
    "pipeline",
    "tokenizer",
    "processor",
    "config",
    "function",
    "constant",
)
_NO_FORWARD = frozenset({"generate", "decode", "batch_decode", "keys", "items", "to", "cuda", "get", "update", "pop"})

_WITH_ENCODER = re.compile(
    r"t5|bart(?!h)|whisper|pegasus|marian|nllb|m2m100|seq2seq|encoder_decoder|decoder_input_ids", re.I
)


class Generation:
    """One call of `generate()`."""

    def __init__(self, flow: Flow, call: Invocation) -> None:
        self.flow = flow
        self.call = call

    @cached_property
    def trace(self) -> Trace:
        """Where its inputs come from."""
        trace = Trace(self.flow)
        for arg in self.call.args:
            if arg.star == "**":
                trace.follow(arg.value)
            elif arg.keyword is not None and arg.keyword.value in INPUTS:
                trace.follow(arg.value, arg.keyword.value if arg.keyword.value != "inputs" else "input_ids")
        for first in self.call.positional(0):
            trace.follow(first, "input_ids")
        return trace

    @cached_property
    def model(self) -> str:
        """The sort of model: "decoder", "encoder-decoder", "vision", "unknown", or "" for something else."""
        receiver = self.call.receiver
        if receiver is None or self.call.method != "generate":
            return ""
        kinds = self.flow.kinds(receiver)
        known = {kind.rstrip("?") for kind in kinds}
        if self.settings("decoder_input_ids"):
            return "encoder-decoder"
        if known & {"decoder", "encoder-decoder", "vision"}:
            # Where several may be meant, the one that allows least is taken.
            return next(kind for kind in ("encoder-decoder", "vision", "decoder") if kind in known)
        if known & set(_NOT_MODELS) or not self._uses_transformers:
            return ""
        if path_of(receiver).removeprefix("self.").count("."):
            # What lies in an object from elsewhere may be a model of any library.
            return ""
        if not self.trace.producers and not known & MODELS - {"model"} and "model" not in kinds:
            return ""
        return self._guess

    @cached_property
    def _guess(self) -> str:
        """The models that the file names, where this one cannot be seen."""
        sorts = {classify(name.split(".")[-1]) for name in self.flow.imported if name.startswith("transformers.")}
        if "encoder-decoder" in sorts or self._encodes:
            return "encoder-decoder"
        makers = {maker for maker, _ in self.trace.producers}
        if "vision" in sorts or "processor" in makers:
            return "vision"
        return "unknown" if makers else "model"

    @cached_property
    def _encodes(self) -> bool:
        """Whether something in the file hints at a model with an encoder."""
        return any(_WITH_ENCODER.search(name) for name in self.flow.words)

    @cached_property
    def _uses_transformers(self) -> bool:
        # No other library's `generate()` has a setting of this name.
        own = any(arg.keyword is not None and arg.keyword.value == ONLY_TRANSFORMERS for arg in self.call.args)
        return own or any(name.split(".")[0] in ("transformers", "peft", "trl") for name in self.flow.imported)

    @cached_property
    def is_assisted(self) -> bool:
        """Whether a draft model or the prompt proposes tokens."""
        return any(self.settings(name) for name in _ASSISTED)

    @cached_property
    def is_elsewhere(self) -> bool:
        """Whether the model surely is on the CPU."""
        nodes: list[cst.CSTNode] = [self.call.receiver] if self.call.receiver is not None else []
        for _ in range(6):
            nodes = [value.node for node in nodes for value in self.flow.values(node)]
            for node in (node for node in nodes if isinstance(node, cst.Call)):
                if self._puts_on_cpu(node):
                    return True
            nodes = [n.func.value for n in nodes if isinstance(n, cst.Call) and isinstance(n.func, cst.Attribute)]
        return False

    def _puts_on_cpu(self, node: cst.Call) -> bool:
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == "device_map" and is_cpu(self.flow, arg.value):
                return True
        return method(node) == "cpu" or (
            method(node) == "to" and bool(node.args) and is_cpu(self.flow, node.args[0].value)
        )

    def settings(self, name: str) -> list[Value]:
        """Give what a setting may be: passed, or in the `GenerationConfig`; nothing where it is not set."""
        found = self.call.values(name)
        for config in self.configs:
            found += config.values(name)
        return [value for value in found if value.constant is not None or value.kind != "constant"]

    @cached_property
    def configs(self) -> list[Invocation]:
        """The `GenerationConfig(...)` calls that may be in force."""
        nodes = {value.node for node in self._config_nodes for value in self.flow.values(node)}
        return [call for call in self.flow.calls if call.node in nodes and call.method == "GenerationConfig"]

    @cached_property
    def _config_nodes(self) -> list[cst.BaseExpression]:
        return self.call.argument("generation_config") + self.flow.assigned("generation_config")

    def surely_lacks(self, name: str) -> bool:
        """Whether nothing sets the setting: neither the call, nor its config, nor an assignment in the file."""
        if self.settings(name) or self.flow.assigned(name) or not self.call.is_complete:
            return False
        values = [value for node in self._config_nodes for value in self.flow.values(node)]
        known = {config.node for config in self.configs}
        unset = all(v.node in known or (v.kind == "constant" and v.constant is None) for v in values)
        return unset and all(config.is_complete for config in self.configs)

    def moves(self) -> list[Move]:
        """Give the moves of inputs that also nothing but `generate()` needs."""
        if not self.trace.moves or self._goes_into_forward():
            return []
        return self.trace.moves

    def _goes_into_forward(self) -> bool:
        for call in self.flow.index.calls:
            if call is not self.call.node and self._takes_carrier(call) and self._is_forward(call):
                return True
        return False

    def _takes_carrier(self, call: cst.Call) -> bool:
        for arg in call.args:
            node: cst.CSTNode = arg.value
            while path_of(node) or isinstance(node, (cst.Subscript, cst.Attribute)):
                if path_of(node) and self._is_carrier(node):
                    return True
                if not isinstance(node, (cst.Subscript, cst.Attribute)):
                    break
                node = node.value
        return False

    def _is_carrier(self, node: cst.CSTNode) -> bool:
        path = path_of(node)
        homes = {scope.node for scope in self.flow.scopes(node, path)}
        return any(carried == path and home in homes for home, carried in self.trace.carriers)

    def _is_forward(self, call: cst.Call) -> bool:
        if method(call) in _NO_FORWARD:
            return False
        if isinstance(call.func, cst.Call) or method(call) == "forward":
            return True
        kinds = {kind.rstrip("?") for kind in self.flow.kinds(call.func)}
        receiver = self.call.receiver
        same = receiver is not None and path_of(receiver) != "" and path_of(call.func) == path_of(receiver)
        if kinds & MODELS or same:
            return True
        # A method of the model that is none of generation's own: a scorer, an encoder.
        if isinstance(call.func, cst.Attribute) and receiver is not None:
            return path_of(call.func.value) == path_of(receiver) != ""
        return False


def generations(flow: Flow) -> list[Generation]:
    """Give every call of `generate()` in the file."""
    return [Generation(flow, call) for call in flow.calls if call.method == "generate" and not call.open]
