"""SG202."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import IMPORTS, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.draft import Draft
    from shapeguard.lint.flow.generation import Generation

OWN_CACHES = ("past_key_values", "cache_implementation", "use_cache", "max_time")

MADE = ("generate()", ".generate")


class NoStaticCache(Rule):
    """A `generate()` whose cache grows with every token.

    ## Why it costs
    The default cache is one token longer each step, so each step of the decode is a new shape and a new compile. With a
    static cache all steps share one graph, and on Neuron `generate()` compiles it by itself.

    ## Example
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    inputs = tokenizer("Hi", return_tensors="pt", padding="max_length", max_length=64, truncation=True)
    model.generate(**inputs, max_new_tokens=32)
    ```

    ## Instead
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    inputs = tokenizer("Hi", return_tensors="pt", padding="max_length", max_length=64, truncation=True)
    model.generate(**inputs, max_new_tokens=32, cache_implementation="static")
    ```

    ## Fix
    Unsafe: sets `cache_implementation="static"`, in the `GenerationConfig` where the call has one.
    """

    code = "SG202"
    message = '`generate()` without a static cache: each step is a new shape; set `cache_implementation="static"`'
    neuron_only = True
    triggers = tuple((".generate", name) for name in IMPORTS)
    patterns = (r"\.generate\b",)
    gate = tuple((made, root) for made in MADE for root in ("^transformers", "^peft", "^trl"))

    def visit_Module(self) -> None:
        """Look at every `generate()`."""
        for generation in self.flow.generations:
            if not generation.model or generation.is_elsewhere or generation.is_assisted:
                continue
            dynamic = [v for v in generation.settings("cache_implementation") if v.constant in ("dynamic", "quantized")]
            for value in dynamic:
                if value.constant == "dynamic":
                    fix = self.flow.fixes.text(value.node, "static", "use a static cache")
                    self.report(value.node, fix=fix)
            for value in generation.settings("past_key_values"):
                if any(name.endswith(".DynamicCache") for name in self.flow.callees(value.node)):
                    message = "a `DynamicCache` grows with each step: each is a new shape; use a `StaticCache`"
                    self.report(value.node, message=message)
            if all(generation.surely_lacks(name) for name in OWN_CACHES):
                self.report(generation.call.node, fix=self._fix(generation))

    def _fix(self, generation: Generation) -> Draft | None:
        wanted = [("cache_implementation", '"static"')]
        call = generation.configs[0] if len(generation.configs) == 1 else generation.call
        if len(generation.configs) > 1:
            return None
        return self.flow.fixes.set_arguments(call, wanted, 'set `cache_implementation="static"`')
