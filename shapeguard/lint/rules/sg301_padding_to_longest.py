"""SG301."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.draft import Draft

TO_LONGEST = ("True", "'longest'")


class PaddingToLongest(Rule):
    """A tokenizer that pads each batch to its longest row.

    ## Why it costs
    Each batch is as long as its longest row, so nearly every batch is a new shape, and so a new compile.

    ## Example
    ```python
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-bert")


    def encode(texts):
        return tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    ```

    ## Instead
    ```python
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-bert")


    def encode(texts):
        return tokenizer(texts, padding="max_length", max_length=256, truncation=True, return_tensors="pt")
    ```

    ## Fix
    Unsafe: pads to the configured `train` length.
    """

    code = "SG301"
    message = 'padding to the longest row gives each batch a length of its own; use `padding="max_length"`'
    triggers = (("padding", "okenizer"), ("padding", "tok("), (".pad(", "okenizer"))
    patterns = (
        r"padding[\"']?\s*[=:]\s*(?:\w+\s*=\s*)?(?:True|[A-Z])",
        r"longest[\"']",
        r"\.LONGEST\b",
        r"okenizer\w*\)?\.pad\(",
        r"tok\)?\.pad\(",
    )
    gate: ClassVar[Groups] = tuple((f"(padding={value}", "*okeniz") for value in TO_LONGEST)
    gate += tuple(("*okeniz(padding", f"padding={value}") for value in (*TO_LONGEST, "CONST"))
    gate += (("(padding=", "longest", "default='longest'"), ("padding=.LONGEST", "^transformers"), ("*okeniz.pad",))
    gate += tuple(
        (f"{call}(**", f"padding={value}") for call in ("tokenizer", "tok", "partial") for value in TO_LONGEST
    )
    gate += (("tok()", "(padding=True"),)

    def visit_Call(self, call: Invocation) -> None:
        """Look at calls of a tokenizer."""
        if call.open or (self.flow.only_in(call.argument("return_tensors"), "np") and call.argument("return_tensors")):
            # Numpy arrays stay on the host.
            return
        if call.method == "pad" and call.receiver is not None:
            is_tokenizer = self.flow.kinds(call.receiver) & {"tokenizer", "tokenizer?"} and not self._is_off(call)
            if is_tokenizer and self.flow.padding(call) in ("longest", "none"):
                self._pads(call)
        elif self.flow.is_tokenizer(call) and self.flow.padding(call) == "longest" and not self._has_one_shape(call):
            self._pads(call)

    def _pads(self, call: Invocation) -> None:
        given = call.argument("padding")
        self.report(given[0] if given else call.node, fix=self._fix(call))

    def _is_off(self, call: Invocation) -> bool:
        return any(self.flow.only(node) is False for node in call.argument("padding"))

    def _has_one_shape(self, call: Invocation) -> bool:
        """One row has no longer row beside it, a constructor encodes all at once, and constants have one shape."""
        if self.flow.runs_once(call.node):
            return True
        texts = call.positional(0) + call.argument("text")
        if any(self.flow.is_one_row(node) for node in texts):
            return True
        return bool(texts) and all(self.flow.is_constant(node) for node in texts)

    def _fix(self, call: Invocation) -> Draft | None:
        lengths = self.context.lengths
        length = lengths.train if lengths is not None else None
        if length is None:
            return self.flow.fixes.needs("pad to a fixed length", "`train` in `[[tool.shapeguard.lint.lengths]]`")
        wanted = [("padding", '"max_length"'), ("max_length", str(length))]
        if call.method != "pad":
            wanted.append(("truncation", "True"))
        return self.flow.fixes.set_arguments(call, wanted, f"pad to {length}")
