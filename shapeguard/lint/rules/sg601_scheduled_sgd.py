"""SG601."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.core.finding import Severity
from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class ScheduledSgd(Rule):
    """SGD with a learning rate that a schedule changes, in an eager optimizer step.

    ## Why it costs
    SGD hands the rate to the device by value, so each new rate is a new program for each shape of parameter. AdamW does
    not. This is so by the April 2026 source of TorchNeuron and uncertain for 2.14.

    ## Example
    ```python
    import torch


    def optimizers(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
    ```

    ## Instead
    ```python
    import torch


    def optimizers(model):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
    ```

    ## Fix
    None.
    """

    code = "SG601"
    message = "SGD bakes the learning rate in: a schedule compiles for each new rate (uncertain for TorchNeuron 2.14)"
    severity = Severity.NOTE
    neuron_only = True
    triggers = (("SGD", "lr_scheduler"), ("SGD", "schedule"))
    gate = (("SGD()",), ("=SGD",), ("SGD", "partial()"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at SGD whose optimizer a scheduler takes."""
        if not call.is_a("torch", "SGD") or call.open or self.flow.is_tensor_argument(call, "lr", 1):
            return
        if any(name.split(".")[-1] != "SGD" for name in call.names):
            # One choice of many: which is taken cannot be seen here.
            return
        for scheduler in self.flow.calls:
            is_scheduler = any(".lr_scheduler." in name for name in scheduler.names) or (
                scheduler.is_a("transformers", "get_scheduler")
                or (scheduler.method.startswith("get_") and scheduler.method.endswith("schedule_with_warmup"))
            )
            if is_scheduler and call.node in {value.node for value in scheduler.values("optimizer", 0)}:
                self.report(call.node)
