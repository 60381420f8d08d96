"""SG503."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class CounterInGraph(Rule):
    """A loop's counter that goes into a compiled function as a Python number, or cuts what goes in.

    ## Why it costs
    A Python number is a constant of the graph, and a slice up to it has a new length each time: every count compiles.

    ## Example
    ```python
    import torch


    @torch.compile(backend="neuron")
    def step(x, position):
        return x + position


    def run(x):
        for position in range(100):
            x = step(x, position)
        return x
    ```

    ## Instead
    ```python
    import torch


    @torch.compile(backend="neuron")
    def step(x, position):
        return x + position


    def run(x):
        for position in torch.arange(100):
            x = step(x, position)
        return x
    ```

    ## Fix
    None.
    """

    code = "SG503"
    message = "a Python counter is a constant of the graph: every count compiles; pass a tensor"
    neuron_only = True
    triggers: ClassVar[Groups] = tuple(
        (word, loop)
        for word in ("torch.compile(", "@torch.compile", "(torch.compile")
        for loop in ("range(", "enumerate(", "+=")
    )
    triggers += tuple(("import compile", loop) for loop in ("range(", "enumerate(", "+="))
    gate = tuple(("*compiled", loop) for loop in ("range()", "enumerate()", "trange()", "+=1"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at calls of what is compiled."""
        if call.open or not self.flow.in_loop(call.node) or not self.flow.calls_compiled(call):
            return
        for arg in call.args:
            if self.flow.is_counter(arg.value):
                self.report(arg.value)
            elif self.flow.is_cut_by_counter(arg.value):
                self.report(
                    arg.value, message="a slice up to a counter has a new length each time: every count compiles"
                )
