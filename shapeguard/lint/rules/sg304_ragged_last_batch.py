"""SG304."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule, both, imported

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation

ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")
TRL_ARGUMENTS = ("SFTConfig", "DPOConfig", "RewardConfig", "KTOConfig", "ORPOConfig", "CPOConfig")
HOW = ("{}()", "={}", "partial<{}", "class({}")
SHUFFLING = frozenset({"RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler"})
EVALUATION = re.compile(
    r"(^|[^a-z])(val|valid|validation|dev|devel)([^a-z]|$)|validat|eval|test|infer|predict|calib|hold_?out|held_?out|gallery|query|bench",
    re.IGNORECASE,
)
TRAINING = re.compile(r"train", re.IGNORECASE)


class RaggedLastBatch(Rule):
    """A training loader that keeps a short last batch.

    ## Why it costs
    The last batch has a shape of its own, so forward and backward compile once more at the end of the first epoch.

    ## Example
    ```python
    from torch.utils.data import DataLoader


    def batches(train_rows):
        return DataLoader(train_rows, batch_size=16, shuffle=True)
    ```

    ## Instead
    ```python
    from torch.utils.data import DataLoader


    def batches(train_rows):
        return DataLoader(train_rows, batch_size=16, shuffle=True, drop_last=True)
    ```
    Loaders for evaluation are left alone: there, dropped rows change the score.

    ## Fix
    Unsafe: the rows of the short batch are no longer seen in that epoch. There is no fix for `TrainingArguments` where
    the `Trainer` also gets an evaluation set, since rows would be lost there too.
    """

    code = "SG304"
    message = "the short last batch has a shape of its own; set `drop_last=True`"
    triggers = (("DataLoader",), ("TrainingArguments",), ("BatchSampler",), *(("trl", name) for name in TRL_ARGUMENTS))
    gate: ClassVar[Groups] = both(
        (*imported("torch", "DataLoader", "BatchSampler"), *imported("torchdata", "StatefulDataLoader")),
        tuple((how.format(name),) for name in ("DataLoader", "BatchSampler", "StatefulDataLoader") for how in HOW),
    )
    gate += both(
        (*imported("transformers", *ARGUMENTS), *imported("trl", *TRL_ARGUMENTS)),
        (*((how.format(name),) for name in (*ARGUMENTS, *TRL_ARGUMENTS) for how in HOW), ("parse_dict()",)),
    )

    def visit_Call(self, call: Invocation) -> None:
        """Look at loaders, batch samplers and training arguments."""
        if call.open:
            return
        if call.is_a("torch", "DataLoader") or call.is_a("torchdata", "StatefulDataLoader"):
            self._loader(call)
        elif call.is_a("torch", "BatchSampler"):
            self._sampler(call)
        elif call.is_a("transformers", *ARGUMENTS) or call.is_a("trl", *TRL_ARGUMENTS):
            self._arguments(call)

    def _loader(self, call: Invocation) -> None:
        if not call.lacks("batch_sampler", 4) or call.constant("drop_last", 8, default=False) is not False:
            return
        if call.constant("batch_size", 1, default=1) in (1, None) or self._is_whole(call):
            return
        if self._is_training(call):
            fix = self.flow.fixes.set_arguments(call, [("drop_last", "True")], "add `drop_last=True`")
            self.report(call.node, fix=fix)

    def _is_whole(self, call: Invocation) -> bool:
        sizes = call.argument("batch_size", 1)
        rows = call.argument("dataset", 0)
        if any(self.flow.never_ends(node) for node in rows):
            return True
        return any("len(" in self.flow.source_of(node) for node in sizes) or any(
            self.flow.source_of(node).startswith("range(") for node in rows
        )

    def _is_training(self, call: Invocation) -> bool:
        rows = " ".join(self.flow.source_of(node) for node in call.argument("dataset", 0))
        purpose = f"{self.flow.purpose(call.node)} {rows}"
        if EVALUATION.search(purpose) or EVALUATION.search(self.flow.purpose(call.node, wide=True)):
            return False
        if any(self.flow.names(node) & {"list"} for node in call.argument("collate_fn", 6)):
            # Rows that stay a Python list have no shape yet.
            return False
        if call.constant("shuffle", 2, default=False) is True:
            return True
        if samplers := call.argument("sampler", 3):
            # A sampler of one's own may never give a short batch.
            names = {name.split(".")[-1] for node in samplers for name in self.flow.callees(node)}
            if names & SHUFFLING or "DistributedSampler" not in names:
                return bool(names & SHUFFLING)
        if self.flow.feeds_backward(call.node):
            return True
        return bool(TRAINING.search(purpose)) and call.constant("shuffle", 2, default=None) is not False

    def _sampler(self, call: Invocation) -> None:
        if call.constant("drop_last", 2) is not False or call.constant("batch_size", 1) == 1:
            return
        inner = call.argument("sampler", 0)
        purpose = self.flow.purpose(call.node) + " ".join(self.flow.source_of(node) for node in inner)
        shuffles = SHUFFLING & {name.split(".")[-1] for node in inner for name in self.flow.callees(node)}
        if EVALUATION.search(purpose) or not (shuffles or TRAINING.search(purpose)):
            return
        given = call.argument("drop_last", 2)
        fix = (
            self.flow.fixes.replace(given[0], "True", "drop the short batch")
            if self.flow.is_literal(given[0])
            else None
        )
        self.report(call.node, message="the short last batch of this sampler has a shape of its own", fix=fix)

    def _arguments(self, call: Invocation) -> None:
        if call.constant("dataloader_drop_last", default=False) is not False:
            return
        if call.constant("per_device_train_batch_size", default=8) == 1 or call.constant("do_train") is False:
            return
        if self._only_evaluates() or self.flow.assigned("dataloader_drop_last"):
            return
        wanted = [("dataloader_drop_last", "True")]
        fix = self.flow.fixes.set_arguments(call, wanted, "add `dataloader_drop_last=True`")
        message = "the short last batch has a shape of its own; set `dataloader_drop_last=True`"
        if self._evaluates():
            fix = None
            message += " (it also drops rows of the evaluation set)"
        self.report(call.node, message=message, fix=fix)

    def _only_evaluates(self) -> bool:
        methods = {call.method for call in self.flow.calls}
        return "train" not in methods and bool(methods & {"evaluate", "predict"})

    def _evaluates(self) -> bool:
        return any(call.argument("eval_dataset") for call in self.flow.calls)
