"""SG401."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation

MARKS = ("mark_dynamic", "maybe_mark_dynamic", "mark_unbacked")


class DynamicCompile(Rule):
    """A compile that asks for dynamic shapes.

    ## Why it costs
    The Neuron compiler takes static shapes only: a graph with a symbolic size fails, or compiles again for each size.

    ## Example
    ```python
    import torch


    @torch.compile(backend="neuron", dynamic=True)
    def step(x):
        return x.relu()
    ```

    ## Instead
    ```python
    import torch


    @torch.compile(backend="neuron", dynamic=False)
    def step(x):
        return x.relu()
    ```
    Pad to a few fixed sizes in place of marking a dimension as dynamic.

    ## Fix
    Unsafe: writes `dynamic=False`, deletes a `mark_dynamic`.
    """

    code = "SG401"
    message = "Neuron compiles static shapes only; `dynamic=True` fails or compiles for each size"
    neuron_only = True
    triggers: ClassVar[Groups] = (("mark_dynamic",), ("mark_unbacked",), ("assume_static_by_default",))
    triggers += tuple((word, "compile") for word in ("dynamic=True", '"dynamic"', "'dynamic'", "dynamic="))
    triggers += (("TorchDynamoPlugin", "dynamic"), ("CompileConfig", "dynamic"))
    gate: ClassVar[Groups] = (
        ("(dynamic=True", "compile"),
        ("(dynamic=", "dynamic=True", "compile"),
        *(("compile(**", f"{how}dynamic") for how in "({["),
    )
    gate += (("TorchDynamoPlugin(dynamic",), ("CompileConfig(dynamic", "^transformers"), ("dynamic=CONST", "compile"))
    gate += (("assume_static_by_default",), *((name,) for name in MARKS))

    def visit_Call(self, call: Invocation) -> None:
        """Look at compiles and marks."""
        if self._compiles(call):
            for node in call.argument("dynamic"):
                if self.flow.only(node) is True:
                    literal = self.flow.is_literal(node)
                    fix = self.flow.fixes.replace(node, "False", "use `dynamic=False`") if literal else None
                    self.report(node, fix=fix)
        elif call.is_a("torch", *MARKS):
            message = f"`{call.method}` asks for a dynamic size; pad to a fixed one instead"
            fix = (
                self.flow.fixes.drop_statement(call.node, "delete the mark")
                if self.flow.stands_alone(call.node)
                else None
            )
            self.report(call.node, message=message, fix=fix)
        elif call.is_a("torch", "patch"):
            for node in call.argument("assume_static_by_default"):
                if self.flow.only(node) is False:
                    self.report(node)

    def _compiles(self, call: Invocation) -> bool:
        """`module.compile(...)` takes what `torch.compile` does."""
        if call.is_a("torch", "compile") or call.is_a("accelerate", "TorchDynamoPlugin"):
            return True
        if call.is_a("transformers", "CompileConfig"):
            return True
        return call.method == "compile" and call.receiver is not None and self.flow.imports_root("torch")

    def visit_Module(self) -> None:
        """Look at Dynamo's own settings."""
        for value in self.flow.assigned("assume_static_by_default"):
            if self.flow.only(value) is False:
                self.report(value, message="`assume_static_by_default = False` makes every size dynamic")
