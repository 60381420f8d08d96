"""SG602."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class TrainingWithoutBf16(Rule):
    """Training arguments for Neuron without `bf16=True`.

    ## Why it costs
    All Trainium chips compute in bfloat16 natively; in float32 the same step takes several times as long and as much
    memory.

    ## Example
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments("out", dataloader_drop_last=True)
    ```

    ## Instead
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments("out", dataloader_drop_last=True, bf16=True)
    ```

    ## Fix
    Unsafe: sets `bf16=True`.
    """

    code = "SG602"
    message = "training on Trainium without `bf16=True`"
    neuron_only = True
    on_by_default = False
    triggers = (("TrainingArguments",),)

    def visit_Call(self, call: Invocation) -> None:
        """Look at training arguments."""
        if call.open or not call.is_a("transformers", "TrainingArguments", "Seq2SeqTrainingArguments"):
            return
        if call.constant("bf16", default=False) is False:
            fix = self.flow.fixes.set_arguments(call, [("bf16", "True")], "set `bf16=True`")
            self.report(call.node, fix=fix)
