"""SG102."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation

WORDS = ("auto", "balanced", "balanced_low_0", "sequential")


class PipelineElsewhere(Rule):
    """A `pipeline()` that runs on the CPU, or takes a model back from Neuron.

    ## Why it costs
    Without a device, or with an integer one, a `pipeline` runs on the CPU or looks for CUDA; a model object that was on
    Neuron it moves back without a word. `load_checkpoint_and_dispatch` with an automatic map does not see Neuron.

    ## Example
    ```python
    from transformers import pipeline

    classify = pipeline("text-classification", model="acme/tiny-bert", device=0)
    ```

    ## Instead
    ```python
    from transformers import pipeline

    classify = pipeline("text-classification", model="acme/tiny-bert", device="neuron")
    ```
    A text-generation pipeline moves its inputs to the device, where they grow by a token a step: call
    `model.generate()` with inputs on the CPU instead.

    ## Fix
    Unsafe: sets `device="neuron"`, where the file does not serve CUDA too.
    """

    code = "SG102"
    message = "this `pipeline` does not run on Neuron"
    neuron_only = True
    triggers = (("load_checkpoint_and_dispatch",), ("pipeline(", "transformers"), ("partial(pipeline", "transformers"))
    gate = (("pipeline()", "^transformers"), ("pipeline", "partial()"), ("load_checkpoint_and_dispatch",))

    def visit_Call(self, call: Invocation) -> None:
        """Look at pipelines, and at Accelerate's loader."""
        if call.is_a("accelerate", "load_checkpoint_and_dispatch"):
            for value in call.values("device_map", 2):
                if value.constant in WORDS:
                    self.report(value.node, message=f'`device_map="{value.constant}"` does not see Neuron')
        elif call.is_a("transformers", "pipeline") and call.method != "from_pretrained":
            self._pipeline(call)

    def _pipeline(self, call: Invocation) -> None:
        fix = self.flow.fixes.set_arguments(call, [("device", '"neuron"')], 'set `device="neuron"`')
        if self.flow.serves("cuda"):
            fix = None
        given = [value for value in call.values("device") if value.kind == "constant" and value.constant is not None]
        for value in given:
            if isinstance(value.constant, int) and value.constant is not True:
                where = "the CPU" if value.constant < 0 else "a CUDA device"
                if value.constant >= 0:
                    self.report(call.node, message=f"`device={value.constant}` means {where}, not Neuron", fix=fix)
            elif str(value.constant).startswith("cuda"):
                self.report(call.node, message=f'`device="{value.constant}"` is not Neuron', fix=fix)
        if call.argument("device") or not call.lacks("device_map") or not call.lacks("device"):
            return
        models = [kind for node in call.argument("model", 1) for kind in self.flow.kinds(node)]
        if any(self.flow.is_placed_elsewhere(node) for node in call.argument("model", 1)):
            return
        is_model = any(self.flow.is_put_somewhere(node) for node in call.argument("model", 1))
        if is_model or any(kind in ("decoder", "encoder-decoder", "vision", "model") for kind in models):
            message = "a `pipeline` of a model object without `device` moves the model to the CPU"
            self.report(call.node, message=message, fix=fix)
        elif call.is_complete and all(self._is_name(node) for node in call.argument("model", 1)):
            self.report(call.node, message="a `pipeline` without `device` runs on the CPU, not on Neuron", fix=fix)

    def _is_name(self, node: cst.BaseExpression) -> bool:
        return isinstance(self.flow.only(node), str)
