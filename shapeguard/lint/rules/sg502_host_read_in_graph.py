"""SG502."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class HostReadInGraph(Rule):
    """A value that is read back to Python inside a compiled region.

    ## Why it costs
    The graph ends where a value is read, and a new one begins after it: two compiles in place of one, and a wait for
    the device in each step.

    ## Example
    ```python
    import torch


    @torch.compile(backend="neuron")
    def step(x):
        if x.sum().item() > 0:
            return x.relu()
        return x
    ```

    ## Instead
    ```python
    import torch


    @torch.compile(backend="neuron")
    def step(x):
        return torch.where(x.sum() > 0, x.relu(), x)
    ```

    ## Fix
    None.
    """

    code = "SG502"
    message = "`{}` reads a value back to Python and ends the graph"
    on_by_default = False
    triggers = (("compile", ".item("), ("compile", ".tolist("))
    gate = (("compile", "item"), ("compile", "tolist"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at reads in compiled functions; a training loop's logging is none."""
        if call.method in ("item", "tolist") and call.receiver is not None and self.flow.is_compiled(call.node):
            self.report(call.node, message=self.message.format(f".{call.method}()"))
