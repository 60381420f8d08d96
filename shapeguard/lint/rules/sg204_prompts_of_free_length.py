"""SG204."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import IMPORTS, ONLY_TRANSFORMERS, SHOWS_TRANSFORMERS, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.draft import Draft

HINTS = (*IMPORTS, ONLY_TRANSFORMERS)
MADE = ("generate()", ".generate")


class PromptsOfFreeLength(Rule):
    """Prompts that reach `generate()` with whatever length they have, again and again.

    ## Why it costs
    The prefill runs once for each prompt, and each new prompt length is a new set of shapes: some 70 to 80 operators
    that compile, and a longer static cache.

    ## Example
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    for question in ("One?", "And a longer one?"):
        inputs = tokenizer(question, return_tensors="pt")
        model.generate(**inputs, max_new_tokens=32, cache_implementation="static")
    ```

    ## Instead
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    for question in ("One?", "And a longer one?"):
        inputs = tokenizer(question, return_tensors="pt", padding="max_length", max_length=64, truncation=True)
        model.generate(**inputs, max_new_tokens=32, cache_implementation="static")
    ```
    Prompts are padded on the left: `padding_side="left"` on the tokenizer.

    ## Fix
    Unsafe: pads to the configured `prompt` length.
    """

    code = "SG204"
    message = "prompts of free length reach `generate()`: each length is a new set of shapes; pad them to a few lengths"
    triggers = tuple((".generate", made, name) for made in ("okenizer", "apply_chat_template") for name in HINTS)
    patterns = (r"\.generate\b",)
    gate = tuple(
        (made, hint, tokens)
        for made in MADE
        for hint in SHOWS_TRANSFORMERS
        for tokens in ("*okeniz", "apply_chat_template()")
    )

    def visit_Module(self) -> None:
        """Look at what made the inputs of every `generate()`."""
        for generation in self.flow.generations:
            if generation.model in ("", "encoder-decoder", "vision") or generation.is_elsewhere:
                continue
            for maker, node in generation.trace.producers:
                if maker == "tokenizer":
                    for call in (call for call in self.flow.calls if call.node is node):
                        self._tokenizer(call)

    def _tokenizer(self, call: Invocation) -> None:
        if call.method == "pad" or not call.lacks("padding") or call.argument("pad_to_multiple_of"):
            return
        tokenized = call.method != "apply_chat_template" or self.flow.only_in(call.argument("tokenize"), True)
        if tokenized and self.flow.is_repeated(call.node) and self.flow.is_fed(call):
            self.report(call.node, fix=self._fix(call))

    def _fix(self, call: Invocation) -> Draft | None:
        length = self.context.lengths.prompt if self.context.lengths is not None else None
        if length is None:
            return self.flow.fixes.needs("pad the prompts", "`prompt` in `[[tool.shapeguard.lint.lengths]]`")
        if not self.flow.pads_left:
            return self.flow.fixes.needs("pad the prompts", '`padding_side="left"` on the tokenizer')
        wanted = [("padding", '"max_length"'), ("max_length", str(length)), ("truncation", "True")]
        return self.flow.fixes.set_arguments(call, wanted, f"pad the prompts to {length}")
