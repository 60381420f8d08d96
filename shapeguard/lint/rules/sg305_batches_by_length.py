"""SG305."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule, imported

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation

SAMPLERS = ("LengthGroupedSampler", "DistributedLengthGroupedSampler", "BatchRebalanceSampler")
BY_LENGTH = ("group_by_length", "batch_rebalance")


class BatchesByLength(Rule):
    """Batches that are made of rows of like length.

    ## Why it costs
    Grouping by length exists to pad less, which means that batches differ in length on purpose: each length compiles.

    ## Example
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments("out", train_sampling_strategy="group_by_length", dataloader_drop_last=True)
    ```

    ## Instead
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments("out", train_sampling_strategy="random", dataloader_drop_last=True)
    ```

    ## Fix
    Unsafe: writes "random", or `False` for `group_by_length`.
    """

    code = "SG305"
    message = "batches grouped by length differ in length on purpose"
    triggers = (("group_by_length",), ("batch_rebalance",), ("LengthGroupedSampler",), ("BatchRebalanceSampler",))
    gate: ClassVar[Groups] = (("(group_by_length",), ("group_by_length=True",), ("train_sampling_strategy='*'",))
    gate += (("train_sampling_strategy=CONST",), *imported("transformers", *SAMPLERS))

    def visit_Call(self, call: Invocation) -> None:
        """Look at training arguments and samplers."""
        if call.is_a("transformers", *SAMPLERS) and not call.open:
            self.report(call.node)
        if not (
            call.method.endswith(("Arguments", "Config", "replace")) or call.is_a("transformers", "TrainingArguments")
        ):
            return
        for node in call.argument("group_by_length"):
            self._grouped(node)
        for node in call.argument("train_sampling_strategy"):
            self._strategy(node)

    def visit_Module(self) -> None:
        """Look at settings that are changed after the arguments were made."""
        for node in self.flow.assigned("group_by_length", of="TrainingArguments"):
            self._grouped(node)
        for node in self.flow.assigned("train_sampling_strategy", of="TrainingArguments"):
            self._strategy(node)

    def _grouped(self, node: cst.BaseExpression) -> None:
        if self.flow.only(node) is True:
            fix = self.flow.fixes.replace(node, "False", "do not group") if self.flow.is_literal(node) else None
            self.report(node, fix=fix)

    def _strategy(self, node: cst.BaseExpression) -> None:
        if self.flow.only(node) in BY_LENGTH:
            self.report(node, fix=self.flow.fixes.text(node, "random", 'use "random"'))
