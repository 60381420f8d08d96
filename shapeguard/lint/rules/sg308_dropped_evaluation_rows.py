"""SG308."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.core.finding import Severity
from shapeguard.lint.rule import Groups, Rule, both, imported

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation

CONFIGS = ("SFTConfig", "DPOConfig", "RewardConfig", "KTOConfig", "ORPOConfig", "CPOConfig")


class DroppedEvaluationRows(Rule):
    """A `dataloader_drop_last=True` where the `Trainer` also evaluates.

    ## Why it costs
    `Trainer` uses the one switch for every loader: the last rows of the evaluation or test set are not counted, so the
    score is that of fewer rows. Make the number of rows a multiple of the batch, or pad the set.

    ## Example
    ```python
    from transformers import Trainer, TrainingArguments


    def fit(model, train_rows, eval_rows):
        args = TrainingArguments("out", dataloader_drop_last=True)
        Trainer(model=model, args=args, train_dataset=train_rows, eval_dataset=eval_rows).train()
    ```

    ## Instead
    ```python
    from transformers import Trainer, TrainingArguments


    def fit(model, train_rows):
        args = TrainingArguments("out", dataloader_drop_last=True)
        Trainer(model=model, args=args, train_dataset=train_rows).train()
    ```

    ## Fix
    None.
    """

    code = "SG308"
    message = "`dataloader_drop_last=True` also drops the last rows of the evaluation set: the score leaves them out"
    severity = Severity.NOTE
    triggers = (("dataloader_drop_last", "eval_dataset"), ("dataloader_drop_last", ".predict("))
    gate: ClassVar[Groups] = both(
        (*imported("transformers", "TrainingArguments", "Seq2SeqTrainingArguments"), *imported("trl", *CONFIGS)),
        (("dataloader_drop_last",),),
    )

    def visit_Call(self, call: Invocation) -> None:
        """Look at training arguments that meet a `Trainer` with an evaluation set."""
        if not (
            call.is_a("transformers", "TrainingArguments", "Seq2SeqTrainingArguments") or call.is_a("trl", *CONFIGS)
        ):
            return
        for node in call.argument("dataloader_drop_last"):
            if self.flow.only(node) is True and self._is_evaluated(call):
                self.report(node)

    def _is_evaluated(self, call: Invocation) -> bool:
        for trainer in self.flow.calls:
            made = {value.node for value in trainer.values("args", 1)}
            evaluated = [node for node in trainer.argument("eval_dataset", 4) if self.flow.only(node) is not None]
            if trainer.method.endswith("Trainer") and call.node in made and evaluated:
                return True
        return False
