"""SG501."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule, both, imported

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation

METHODS = ("nonzero", "masked_select", "unique", "unique_consecutive", "argwhere")


class DataDependentShape(Rule):
    """A shape that depends on the values of a tensor, in a forward or a compiled function.

    ## Why it costs
    How many elements a mask picks differs from batch to batch, so each count is a new shape for all that follows. In a
    compiled function it also breaks the graph.

    ## Example
    ```python
    import torch
    from torch import nn


    class Head(nn.Module):
        def forward(self, hidden, labels):
            return hidden[labels != -100].mean()


    head = torch.compile(Head(), backend="neuron")
    ```

    ## Instead
    ```python
    import torch
    from torch import nn


    class Head(nn.Module):
        def forward(self, hidden, labels):
            keep = (labels != -100).unsqueeze(-1)
            return torch.where(keep, hidden, 0).sum() / keep.sum()


    head = torch.compile(Head(), backend="neuron")
    ```

    The rule speaks in compiled functions, and in forwards of files that compile something or name Neuron.

    ## Fix
    Unsafe: `x[x > 0].sum()` and `.mean()` become sums over `torch.where(x > 0, x, 0)`, where the mask is made of the
    tensor itself. Elsewhere none: the form with `where` depends on what is done with the elements.
    """

    code = "SG501"
    message = "how many elements this gives depends on their values: each count is a new shape"
    neuron_only = True
    triggers: ClassVar[Groups] = (
        ("torch.compile(",),
        ("@torch.compile",),
        ("(torch.compile",),
        ("import compile", "torch"),
    )
    triggers += (("def forward", "neuron"), ("def forward", ".compile()"))
    gate: ClassVar[Groups] = both(
        (*imported("torch", "compile"), ("*forward", "compile()"), ("*forward", "neuron")),
        tuple((shape,) for shape in (*(f"{name}()" for name in (*METHODS, "where", "repeat_interleave")), "[~]")),
    )

    @property
    def _speaks(self) -> bool:
        return self.flow.compiles or self.flow.serves("neuron")

    def visit_Call(self, call: Invocation) -> None:
        """Look at calls whose result has as many elements as the values say."""
        if call.open or not self._speaks or not self.flow.in_graph(call.node):
            return
        is_torch = call.is_a("torch", *METHODS) or (call.method in METHODS and self.flow.may_be_tensor(call.receiver))
        if is_torch and not (call.method == "nonzero" and call.argument("size")):
            self.report(
                call.node,
                message=f"`{call.method}` gives as many elements as the values say: each count is a new shape",
            )
        elif call.is_a("torch", "where") and len(call.args) == 1 and call.is_complete:
            self.report(call.node, message="`where` with one argument gives as many elements as the condition is true")
        elif call.method == "repeat_interleave" and not call.argument("output_size"):
            self._repeated(call)

    def _repeated(self, call: Invocation) -> None:
        position = 1 if call.is_a("torch", "repeat_interleave") else 0
        for node in call.argument("repeats", position):
            if self.flow.is_tensor(node):
                self.report(
                    call.node, message="`repeat_interleave` by a tensor gives as many elements as its values say"
                )

    def visit_Module(self) -> None:
        """Look at reads through a mask."""
        for subscript in self.flow.subscripts if self._speaks else []:
            if self.flow.is_masked_read(subscript) and self.flow.in_graph(subscript):
                message = "a read through a mask gives as many elements as the mask is true"
                self.report(subscript, message=message, fix=self.flow.where_form(subscript))
