"""SG203."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import IMPORTS, ONLY_TRANSFORMERS, SHOWS_TRANSFORMERS, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.draft import Draft
    from shapeguard.lint.flow.generation import Generation

HINTS = (*IMPORTS, ONLY_TRANSFORMERS)
MADE = ("generate()", ".generate")


class VaryingCacheLength(Rule):
    """A budget of new tokens that differs from call to call.

    ## Why it costs
    The static cache is as long as prompt plus budget, and keeps its largest length: each call that needs a longer one
    compiles the decode step again.

    ## Example
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    for question in ("One?", "And a longer one?"):
        inputs = tokenizer(question, return_tensors="pt", padding="max_length", max_length=64, truncation=True)
        model.generate(**inputs, max_new_tokens=4 * len(question), cache_implementation="static")
    ```

    ## Instead
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    for question in ("One?", "And a longer one?"):
        inputs = tokenizer(question, return_tensors="pt", padding="max_length", max_length=64, truncation=True)
        model.generate(**inputs, max_new_tokens=64, cache_implementation="static")
    ```
    Or keep the budget and set `max_cache_len` to the longest prompt and budget together.

    ## Fix
    Unsafe: writes the `new_tokens` of the configured lengths, or `max_cache_len` of the `cache` length.
    """

    code = "SG203"
    message = "`{}` differs between calls, and with it the length of the cache"
    triggers = tuple((".generate", size, name) for size in ("max_new_tokens", "max_length") for name in HINTS)
    patterns = (r"\.generate\b",)
    gate = tuple(
        (made, size, hint) for made in MADE for size in ("max_new_tokens", "max_length") for hint in SHOWS_TRANSFORMERS
    )

    def visit_Module(self) -> None:
        """Look at every `generate()`."""
        for generation in self.flow.generations:
            if not generation.model or generation.is_elsewhere or generation.settings("max_cache_len"):
                continue
            if not generation.surely_lacks("past_key_values"):
                continue
            for name in ("max_new_tokens", "max_length"):
                self._budget(generation, name)

    def _budget(self, generation: Generation, name: str) -> None:
        for node in generation.call.argument(name):
            if self.flow.varies(node) and not self.flow.measures(node):
                self.report(node, message=self.message.format(name), fix=self._fix(generation))

    def _fix(self, generation: Generation) -> Draft | None:
        lengths = self.context.lengths
        if lengths is None or lengths.cache is None:
            return self.flow.fixes.needs("fix the length of the cache", "`cache` in `[[tool.shapeguard.lint.lengths]]`")
        wanted = [("max_cache_len", str(lengths.cache))]
        return self.flow.fixes.set_arguments(generation.call, wanted, f"set `max_cache_len={lengths.cache}`")
