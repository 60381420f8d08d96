"""SG306."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation


class BatchSizeSearch(Rule):
    """A search for the largest batch size that fits.

    ## Why it costs
    Each size that is tried is a new shape: forward and backward compile for every one of them.

    ## Example
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments("out", auto_find_batch_size=True, dataloader_drop_last=True)
    ```

    ## Instead
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments("out", per_device_train_batch_size=8, dataloader_drop_last=True)
    ```

    ## Fix
    Unsafe: writes `False`. There is none for `find_executable_batch_size`.
    """

    code = "SG306"
    message = "a search for the batch size compiles once for each size that it tries"
    triggers = (("auto_find_batch_size",), ("find_executable_batch_size",))
    gate = (("(auto_find_batch_size",), ("auto_find_batch_size=True",), ("find_executable_batch_size", "^accelerate"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at training arguments and the decorator's calls."""
        names = ("Arguments", "Config", "Trainer", "fit", "replace")
        if call.method.endswith(names) or call.is_a("transformers", "TrainingArguments"):
            for node in call.argument("auto_find_batch_size"):
                self._searched(node)
        if call.is_a("accelerate", "find_executable_batch_size") and not call.open:
            self.report(call.node)

    def visit_Module(self) -> None:
        """Look at bare decorators, and at settings that are changed after the arguments were made."""
        for node in self.flow.assigned("auto_find_batch_size", of="TrainingArguments"):
            self._searched(node)
        for decorator in self.flow.decorators:
            names = self.flow.names(decorator)
            if any(n.startswith("accelerate.") and n.endswith(".find_executable_batch_size") for n in names):
                self.report(decorator)

    def _searched(self, node: cst.BaseExpression) -> None:
        if self.flow.only(node) is True:
            fix = self.flow.fixes.replace(node, "False", "fix the size") if self.flow.is_literal(node) else None
            self.report(node, fix=fix)
