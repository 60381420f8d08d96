"""SG403."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation

DEFAULTS = {"recompile_limit": 8, "cache_size_limit": 8}
DEFAULTS |= {"accumulated_recompile_limit": 256, "accumulated_cache_size_limit": 256}


class RaisedRecompileLimit(Rule):
    """A recompile limit of Dynamo that is raised.

    ## Why it costs
    The limit of 8 stops a function that compiles for every shape it meets. Raised, it hides the cause: each further
    shape is one more compile for Neuron.

    ## Example
    ```python
    import torch

    torch._dynamo.config.recompile_limit = 64
    ```

    ## Instead
    ```python
    import torch

    torch._dynamo.config.recompile_limit = 8
    ```
    Pad the inputs to a few shapes, at most as many as the limit.

    ## Fix
    None.
    """

    code = "SG403"
    message = "a raised `{}` hides a compile for each shape"
    triggers = tuple(("dynamo", name) for name in DEFAULTS)

    def visit_Call(self, call: Invocation) -> None:
        """Look at `config.patch(...)`."""
        if call.method == "patch":
            for name in DEFAULTS:
                for node in call.argument(name):
                    self._limit(name, node)

    def visit_Module(self) -> None:
        """Look at assignments."""
        for name in DEFAULTS:
            for node in self.flow.assigned(name):
                self._limit(name, node)

    def _limit(self, name: str, node: cst.BaseExpression) -> None:
        value = self.flow.only(node)
        if isinstance(value, int) and value > DEFAULTS[name]:
            self.report(node, message=self.message.format(name))
