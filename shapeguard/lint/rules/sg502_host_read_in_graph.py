"""SG502."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule, imported

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


METHODS = ("item", "tolist")
NUMBERS = {"int", "float", "bool"}


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

    Reads are `.item()`, `.tolist()`, `int(tensor)`, `float(tensor)`, `bool(tensor)`, and a tensor as the condition of
    an `if`, a `while` or an `assert`. The rule speaks in functions under `torch.compile` and in the forward of a module
    that the file compiles, never in a loop around them.

    ## Fix
    None.
    """

    code = "SG502"
    message = "`{}` reads a value back to Python and ends the graph"
    on_by_default = False
    triggers = (("compile", "torch"),)
    gate = imported("torch", "compile")

    def visit_Call(self, call: Invocation) -> None:
        """Look at reads in compiled functions; a training loop's logging is none."""
        if call.open or not self.flow.is_compiled(call.node):
            return
        if call.method in METHODS and call.receiver is not None and not call.args:
            self.report(call.node, message=self.message.format(f".{call.method}()"))
        elif call.names & NUMBERS and len(call.args) == 1 and self.flow.is_value(call.args[0].value):
            self.report(call.node, message=self.message.format(f"{call.method}(...)"))

    def visit_Module(self) -> None:
        """Look at conditions."""
        for node in self.flow.conditions:
            self.report(node, message="a condition on the values of a tensor reads them back and ends the graph")
