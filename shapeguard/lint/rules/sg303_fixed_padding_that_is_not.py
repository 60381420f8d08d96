"""SG303."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.draft import Draft

LM_COLLATORS = ("DataCollatorForLanguageModeling", "DataCollatorForWholeWordMask")


class FixedPaddingThatIsNot(Rule):
    """Rows that look padded to a fixed length and are not.

    ## Why it costs
    `max_length` with truncation only cuts; without truncation, longer rows keep their length; without `max_length`, the
    tokenizer of a language model often has no length to pad to. Each remaining length is a compile.

    ## Example
    ```python
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-bert")


    def encode(row):
        return tokenizer(row["text"], padding="max_length", max_length=256)
    ```

    ## Instead
    ```python
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-bert")


    def encode(row):
        return tokenizer(row["text"], padding="max_length", max_length=256, truncation=True)
    ```

    ## Fix
    Unsafe: adds what is missing; a length comes from the configured `train`.
    """

    code = "SG303"
    message = "rows longer than `max_length` keep their length; add `truncation=True`"
    triggers: ClassVar[Groups] = (
        ("okenizer", '"max_length"'),
        ("okenizer", "'max_length'"),
        ("PaddingStrategy.MAX_LENGTH",),
    )
    triggers += tuple((name, "okenizer") for name in LM_COLLATORS)
    gate: ClassVar[Groups] = (("(padding='max_length'", "*okeniz"), ("(padding=", "padding='max_length'", "*okeniz"))
    gate += (
        ("(padding=", "max_length", "default='max_length'"),
        ("padding=CONST", "max_length"),
        ("padding=.MAX_LENGTH", "^transformers"),
    )
    gate += tuple((f"{call}(**", "padding='max_length'") for call in ("tokenizer", "tok", "partial"))
    gate += tuple((name, "^transformers") for name in LM_COLLATORS)

    def visit_Module(self) -> None:
        """Look at every tokenizer call, and at what collates its rows."""
        for call in self.flow.calls:
            if not call.open and self.flow.is_tokenizer(call) and call.method != "pad":
                self._padded(call)
        if any(call.is_a("transformers", *LM_COLLATORS) for call in self.flow.calls) and not self.flow.packs:
            self._collated()

    def _padded(self, call: Invocation) -> None:
        if self.flow.padding(call) != "fixed" or call.argument("pad_to_multiple_of"):
            return
        if not self.flow.is_fed(call):
            # A constant has one length, however often it is encoded.
            return
        if call.argument("max_length"):
            if call.lacks("truncation") or self._is_off(call, "truncation"):
                fix = self.flow.fixes.set_arguments(call, [("truncation", "True")], "cut longer rows")
                self.report(call.node, fix=fix)
        elif call.lacks("max_length") and self.flow.imports("ForCausalLM") and not self.flow.serves("model_max_length"):
            message = (
                '`padding="max_length"` without `max_length`: a tokenizer without a length of its own does not pad'
            )
            self.report(call.node, message=message, fix=self._fix(call, [("max_length", "{}")]))

    def _is_off(self, call: Invocation, name: str) -> bool:
        given = call.argument(name)
        return bool(given) and all(self.flow.only(node) in (False, "do_not_truncate") for node in given)

    def _collated(self) -> None:
        for collator in self.flow.calls:
            if collator.is_a("transformers", *LM_COLLATORS) and self.flow.padding(collator) == "fixed":
                return
        if any(self.flow.padding(call) == "fixed" for call in self.flow.encodings):
            return
        for call in self.flow.encodings:
            if call.method == "apply_chat_template" or self.flow.padding(call) != "none":
                continue
            if call.argument("max_length") or call.argument("truncation") or self.flow.is_mapped(call.node):
                message = "rows are cut but not padded, and the collator pads each batch to its longest row"
                wanted = [("padding", '"max_length"'), ("max_length", "{}")]
                self.report(call.node, message=message, fix=self._fix(call, wanted))

    def _fix(self, call: Invocation, wanted: list[tuple[str, str]]) -> Draft | None:
        given = [constant for node in call.argument("max_length") for constant in self.flow.constants(node)]
        length = given[0] if given else (self.context.lengths.train if self.context.lengths is not None else None)
        if length is None:
            return self.flow.fixes.needs("pad to a fixed length", "`train` in `[[tool.shapeguard.lint.lengths]]`")
        wanted = [(name, text.format(length)) for name, text in wanted if not (name == "max_length" and given)]
        return self.flow.fixes.set_arguments(call, wanted, f"pad to {length}")
