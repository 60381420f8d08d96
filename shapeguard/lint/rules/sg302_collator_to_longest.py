"""SG302."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule, both, imported

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.draft import Draft

COLLATORS = (
    "DataCollatorWithPadding",
    "DataCollatorForSeq2Seq",
    "DataCollatorForTokenClassification",
    "DataCollatorForMultipleChoice",
)
LM_COLLATORS = ("DataCollatorForLanguageModeling", "DataCollatorForWholeWordMask")


class CollatorToLongest(Rule):
    """A collator that pads each batch to its longest row.

    ## Why it costs
    Each batch is as long as its longest row, so nearly every batch is a new shape: forward and backward compile again.
    `Trainer` does the same by itself when it has a tokenizer and no collator.

    ## Example
    ```python
    from transformers import AutoTokenizer, DataCollatorWithPadding

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-bert")
    collator = DataCollatorWithPadding(tokenizer)
    ```

    ## Instead
    ```python
    from transformers import AutoTokenizer, DataCollatorWithPadding

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-bert")
    collator = DataCollatorWithPadding(tokenizer, padding="max_length", max_length=256)
    ```

    ## Fix
    Unsafe: pads to the configured `train` length. `pad_sequence` gets a row of that length beside the others, which is
    taken away again; `DataCollatorForLanguageModeling` gets it as `pad_to_multiple_of`.
    """

    code = "SG302"
    message = 'a collator that pads to the longest row gives each batch a length of its own; use `padding="max_length"`'
    triggers = (
        ("DataCollator",),
        ("Trainer(", "okenizer", "transformers"),
        ("pad_sequence",),
        ("collat", "max(", "len("),
    )
    gate: ClassVar[Groups] = imported("transformers", *COLLATORS, "Trainer", "Seq2SeqTrainer")
    gate += both(imported("transformers", *LM_COLLATORS), (("{input_ids", "__getitem__"),))
    gate += (*both(imported("torch", "pad_sequence"), (("*collat",),)), ("max(len", "*collat"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at collators, at `Trainer`, and at what collate functions do."""
        if call.is_a("transformers", *COLLATORS):
            if self._is_longest(call) and not self._rows_are_fixed():
                self.report(call.node, fix=self._fix(call))
        elif call.is_a("transformers", *LM_COLLATORS):
            self._language_model(call)
        elif call.is_a("transformers", "Trainer", "Seq2SeqTrainer"):
            self._trainer(call)
        elif self._in_collate_function(call):
            message = "this collate function pads to the longest row: each batch has a length of its own"
            self.report(call.node, message=message, fix=self._rows_fix(call))

    def _in_collate_function(self, call: Invocation) -> bool:
        if call.is_a("torch", "pad_sequence"):
            return self.flow.collates(call.node) or self.flow.collates_through(call.node)
        return self._measures_rows(call) and self.flow.collates(call.node)

    def _language_model(self, call: Invocation) -> None:
        """These collators take no `padding`; what else may be wrong with their rows is SG303's."""
        if call.lacks("pad_to_multiple_of") and self.flow.makes_ragged_rows and not self.flow.packs:
            message = (
                "this collator pads each batch to its longest row; use `pad_to_multiple_of` with the largest length"
            )
            self.report(call.node, message=message, fix=self._fix(call, is_language_model=True))

    def _is_longest(self, call: Invocation) -> bool:
        padding = self.flow.padding(call)
        return padding == "longest" or (padding == "none" and not call.argument("padding"))

    def _rows_are_fixed(self) -> bool:
        encodings = self.flow.encodings
        return self.flow.packs or any(self.flow.padding(call) == "fixed" for call in encodings)

    def _trainer(self, call: Invocation) -> None:
        tokenizers = call.argument("processing_class") + call.argument("tokenizer")
        if not call.lacks("data_collator", 2) or not tokenizers or self.flow.packs:
            return
        if not any(self.flow.kinds(node) & {"tokenizer", "tokenizer?"} for node in tokenizers):
            return
        paddings = {self.flow.padding(each) for each in self.flow.encodings}
        if "none" in paddings and "fixed" not in paddings:
            message = "`Trainer` without a `data_collator` pads each batch to its longest row"
            self.report(call.node, message=message)

    def _measures_rows(self, call: Invocation) -> bool:
        if call.method != "max" or not call.args or self.flow.is_choice(call.node):
            return False
        if self.flow.is_compared(call.node) or self.flow.is_alternative(call.node):
            return False
        return self.flow.is_over_lengths(call.args[0].value)

    def _rows_fix(self, call: Invocation) -> Draft | None:
        if not call.is_a("torch", "pad_sequence"):
            return None
        length = self._length
        return self._need if length is None else self.flow.fixes.pad_rows(call, length)

    @property
    def _length(self) -> int | None:
        return self.context.lengths.train if self.context.lengths is not None else None

    @property
    def _need(self) -> Draft:
        return self.flow.fixes.needs("pad to a fixed length", "`train` in `[[tool.shapeguard.lint.lengths]]`")

    def _fix(self, call: Invocation, *, is_language_model: bool = False) -> Draft | None:
        length = self._length
        if length is None:
            return self._need
        wanted = [("padding", '"max_length"'), ("max_length", str(length))]
        if is_language_model:
            wanted = [("pad_to_multiple_of", str(length))]
        return self.flow.fixes.set_arguments(call, wanted, f"pad to {length}")
