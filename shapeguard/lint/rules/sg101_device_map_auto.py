"""SG101."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.lint.rule import Groups, Rule, both

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.draft import Draft

WORDS = ("auto", "balanced", "balanced_low_0", "sequential")
LOADERS = ("from_pretrained", "from_config", "pipeline")
# Other libraries' loaders have device maps of their own, or run on GPUs only.
LIBRARIES = frozenset({"transformers", "peft", "trl", "sentence_transformers", "accelerate"})


class DeviceMapAuto(Rule):
    """A `device_map` that does not see Neuron: "auto", "balanced", "balanced_low_0" or "sequential".

    ## Why it costs
    These words let Accelerate share out the memory of the devices it knows. Neuron is not among them, so the model
    loads on the CPU without a word, and every step runs there.

    ## Example
    ```python
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="auto")
    ```

    ## Instead
    ```python
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    ```
    A model larger than one core takes `DistributedConfig(tp_size=...)` instead of a `device_map`.

    ## Fix
    Unsafe: writes `"neuron"`, and moves what a plain forward gets from the CPU.
    There is no fix beside `max_memory`, under torchrun, or where the file serves CUDA too.
    """

    code = "SG101"
    message = '`device_map="{}"` does not see Neuron: the model loads on the CPU; use `device_map="neuron"`'
    triggers = tuple(("device_map", word) for word in ("auto", "balanced", "sequential"))
    gate: ClassVar[Groups] = tuple((f"(device_map={word!r}", made) for word in WORDS for made in LOADERS)
    gate += tuple(("(device_map=", f"'{word}'", made) for word in WORDS for made in LOADERS)
    gate += both(
        (*((f"{made}(**",) for made in (*LOADERS, "partial")), *((f"partial<{made}",) for made in LOADERS)),
        (("{device_map",), ("[device_map",), ("(device_map",)),
        tuple((f"'{word}'",) for word in WORDS),
    )
    gate += tuple(
        ("{device_map", how, f"'{word}'") for word in WORDS for how in ("(model_init_kwargs", "(model_kwargs")
    )

    def visit_Call(self, call: Invocation) -> None:
        """Look at what loads a model."""
        if call.method in LOADERS:
            if call.names and not any(self._is_ours(name) for name in call.names):
                return
            nodes = call.argument("device_map")
            nodes += [n for kw in call.argument("model_kwargs") for n in self._entry(kw)]
        elif call.argument("model_init_kwargs"):
            nodes = [n for kw in call.argument("model_init_kwargs") for n in self._entry(kw)]
        else:
            return
        for value in (value for node in nodes for value in self.flow.values(node)):
            if value.kind == "constant" and value.constant in WORDS:
                self.report(value.node, message=self.message.format(value.constant), fix=self._fix(call, value.node))

    def _is_ours(self, name: str) -> bool:
        return name.split(".")[0] in LIBRARIES or name.startswith((".", "cls", "self"))

    def _entry(self, kwargs: cst.BaseExpression) -> list[cst.BaseExpression]:
        return self.flow.mapping(kwargs).entries.get("device_map", [])

    def _fix(self, call: Invocation, node: cst.CSTNode) -> Draft | None:
        if call.argument("max_memory") or self.flow.serves("cuda") or self.flow.serves("LOCAL_RANK"):
            return None
        fix = self.flow.fixes.text(node, "neuron", 'use `device_map="neuron"`')
        return self.flow.with_inputs(fix, call)
