"""SG402."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shapeguard.core.finding import Severity
from shapeguard.lint.rule import Groups, Rule, both, imported

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation

# The eager backends serve to debug; openxla is the older way to Neuron.
PASSING = frozenset({"neuron", "eager", "aot_eager", "aot_eager_decomp_partition", "openxla", "no", ""})
OTHER_NAMES = frozenset(
    {
        "INDUCTOR",
        "CUDAGRAPHS",
        "TENSORRT",
        "ONNXRT",
        "NVPRIMS_NVFUSER",
        "AOT_TS_NVFUSER",
        "OFI",
        "FX2TRT",
        "IPEX",
        "TVM",
    }
)
BACKENDS = frozenset({"inductor", "cudagraphs", "onnxrt", "tensorrt", "torch_tensorrt", "ipex", "tvm", "hpu_backend"})
WORDS = ("backend", "mode")
MODES = ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class OtherBackend(Rule):
    """A compile for another backend than Neuron's.

    ## Why it costs
    `inductor` and the like do not compile for Neuron: the call fails, or its code runs elsewhere.

    ## Example
    ```python
    import torch


    @torch.compile(backend="inductor")
    def step(x):
        return x.relu()
    ```

    ## Instead
    ```python
    import torch


    @torch.compile(backend="neuron")
    def step(x):
        return x.relu()
    ```
    "eager" and "aot_eager" pass, since they serve to debug. A `mode` is a note: the Neuron backend ignores it.

    ## Fix
    Unsafe: writes "neuron".
    """

    code = "SG402"
    message = "the backend `{}` does not compile for Neuron"
    neuron_only = True
    triggers: ClassVar[Groups] = (
        ("dynamo_backend",),
        ("torch_compile_backend",),
        ("TorchDynamoPlugin",),
        ("CompileConfig", "backend"),
        (".compile(", "backend="),
    )
    triggers += tuple(("torch", "compile", word) for word in ("backend=", '"backend"', "'backend'", "mode=", '"mode"'))
    patterns = (
        r"compile\(",
        r"\.compile\b",
        r"import .*\bcompile\b",
        "dynamo_backend",
        "compile_backend",
        "DynamoPlugin",
        "CompileConfig",
    )
    gate: ClassVar[Groups] = both(
        imported("torch", "compile"),
        (
            *((f"compile({word}",) for word in WORDS),
            *(("=compile", f"({word}") for word in WORDS),
            *(("compile(**", f"{how}{word}") for how in "({[" for word in WORDS),
            *(("partial<compile", f"{how}{word}") for how in "({[" for word in WORDS),
        ),
    )
    gate += (
        *both(imported("transformers", "CompileConfig"), (("(backend",), ("CompileConfig(**",))),
        *((f"{how}torch_compile_backend",) for how in "({["),
    )
    gate += tuple(
        (word, f"torch_compile_backend={value}")
        for word in ("class(TrainingArguments", "class(SFTConfig")
        for value in ("'*'", "CONST")
    )
    gate += (("(dynamo_backend",), ("TorchDynamoPlugin(backend",), ("compile(backend",))

    def visit_Call(self, call: Invocation) -> None:
        """Look at compiles, training arguments and Accelerate."""
        if call.is_a("torch", "compile"):
            self._backend(call, call.argument("backend"))
            for node in call.argument("mode"):
                if self.flow.only(node) in MODES and call.constant("backend", default="neuron") == "neuron":
                    message = f'the Neuron backend ignores `mode="{self.flow.only(node)}"`'
                    self.report(node, message=message, severity=Severity.NOTE)
        elif call.method == "compile" and call.receiver is not None:
            # A module's own; nobody else's names a backend of Dynamo.
            self._backend(call, [node for node in call.argument("backend") if self.flow.only(node) in BACKENDS])
        elif call.is_a("accelerate", "TorchDynamoPlugin") or call.is_a("transformers", "CompileConfig"):
            self._backend(call, call.argument("backend"))
        elif call.is_a("accelerate", "Accelerator"):
            self._backend(call, call.argument("dynamo_backend"))
        elif call.method.endswith(("Arguments", "Config")) or call.is_a("transformers", "TrainingArguments"):
            self._backend(call, call.argument("torch_compile_backend"))

    def _backend(self, call: Invocation, nodes: list[cst.BaseExpression]) -> None:
        for node in nodes:
            name = self.flow.only(node)
            if isinstance(name, str) and name not in PASSING:
                self.report(
                    node, message=self.message.format(name), fix=self.flow.fixes.text(node, "neuron", 'use "neuron"')
                )
            for full in self.flow.names(node):
                if full.split(".")[-1] in OTHER_NAMES:
                    self.report(node, message=self.message.format(full.split(".")[-1].lower()))
