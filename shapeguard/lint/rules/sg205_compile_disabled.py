"""SG205."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class CompileDisabled(Rule):
    """A `generate()` that is told not to compile its decode step.

    ## Why it costs
    With a static cache `generate()` compiles the decode step on Neuron by itself. With `disable_compile=True` each
    operator of each step is started alone.

    ## Example
    ```python
    from transformers import GenerationConfig

    settings = GenerationConfig(max_new_tokens=32, cache_implementation="static", disable_compile=True)
    ```

    ## Instead
    ```python
    from transformers import GenerationConfig

    settings = GenerationConfig(max_new_tokens=32, cache_implementation="static")
    ```

    ## Fix
    Unsafe: writes `False`.
    """

    code = "SG205"
    message = "`disable_compile=True` keeps the decode step from being compiled"
    neuron_only = True
    triggers = (("disable_compile",),)
    gate = (("disable_compile=True",), ("disable_compile=CONST",), ("(disable_compile=", "True"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at generation and its configuration."""
        if call.method in ("generate", "GenerationConfig", "update", "from_pretrained"):
            for value in call.values("disable_compile"):
                if value.constant is True:
                    self.report(value.node, fix=self.flow.fixes.replace(value.node, "False", "let it compile"))
