"""SG103."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class HardCodedCuda(Rule):
    """A device that is written out as "cuda".

    ## Why it costs
    On a Trainium host there is no CUDA device: the line raises, or its other branch runs on the CPU.

    ## Example
    ```python
    import torch

    rows = torch.zeros(8, 4).to("cuda")
    ```

    ## Instead
    ```python
    import torch

    rows = torch.zeros(8, 4).to("neuron")
    ```

    ## Fix
    Unsafe: writes `"neuron"`.
    """

    code = "SG103"
    message = 'a device written out as "cuda"'
    neuron_only = True
    on_by_default = False
    triggers = (("cuda",),)

    def visit_Call(self, call: Invocation) -> None:
        """Look at moves, and at everything with a `device`."""
        values = call.values("device")
        if call.method in ("to", "device"):
            values += [v for node in call.positional(0) for v in self.flow.values(node)]
        for value in values:
            if value.kind == "constant" and str(value.constant).split(":")[0] == "cuda":
                fix = self.flow.fixes.text(value.node, "neuron", 'use `"neuron"`')
                self.report(value.node, fix=fix)
        if call.method == "cuda" and call.receiver is not None and not call.is_a("torch", "cuda"):
            self.report(call.node, message="`.cuda()` asks for a CUDA device")
