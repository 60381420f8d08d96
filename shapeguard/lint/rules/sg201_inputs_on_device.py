"""SG201."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import IMPORTS, ONLY_TRANSFORMERS, SHOWS_TRANSFORMERS, Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.draft import Draft
    from shapeguard.lint.flow.generation import Generation
    from shapeguard.lint.flow.moves import Move

FIRST_THAT_MOVES = (5, 20)
TO_DEVICE = ("send_to_device()", "move_to_device()")
TEXT = ("input_ids", "attention_mask")

HINTS = (*IMPORTS, ONLY_TRANSFORMERS)
MADE = ("generate()", ".generate")


class GenerateInputsOnDevice(Rule):
    """Inputs of `generate()` that are moved to the device.

    ## Why it costs
    `generate()` moves what the forward needs by itself. The output sequence and the attention mask grow by a token each
    step; if they start on the device, every step is a new shape there, and so a new compile.

    ## Example
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    inputs = tokenizer("Hi", return_tensors="pt", padding="max_length", max_length=64, truncation=True).to(model.device)
    model.generate(**inputs, max_new_tokens=32, cache_implementation="static")
    ```

    ## Instead
    ```python
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("acme/tiny-lm", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron")
    inputs = tokenizer("Hi", return_tensors="pt", padding="max_length", max_length=64, truncation=True)
    model.generate(**inputs, max_new_tokens=32, cache_implementation="static")
    ```
    Pixel values, the inputs of an encoder, prompt lookup and assisted generation do need the move, and so do values
    that also go into a forward of your own. Releases of transformers before 5.20 need it too.

    ## Fix
    Unsafe: drops the move.
    """

    code = "SG201"
    message = "inputs of `generate()` are moved to the device: each step is a new shape; leave them on the CPU"
    triggers = tuple((".generate", moved, name) for moved in (".to(", ".cuda(", "to_device(") for name in HINTS)
    patterns = (r"\.generate\b",)
    gate = tuple(
        (made, moved, hint) for made in MADE for moved in ("to()", "cuda()", *TO_DEVICE) for hint in SHOWS_TRANSFORMERS
    )

    def visit_Module(self) -> None:
        """Look at every `generate()`."""
        version = self.context.transformers
        if version is not None and version < FIRST_THAT_MOVES:
            return
        for generation in self.flow.generations:
            if generation.model in ("", "encoder-decoder") or generation.is_assisted or generation.is_elsewhere:
                continue
            for move in generation.moves():
                if not move.casts and self._is_text(generation, move):
                    self.report(move.node, fix=self._fix(move))

    def _is_text(self, generation: Generation, move: Move) -> bool:
        makers = {maker for maker, _ in generation.trace.producers}
        if generation.model == "vision" or "processor" in makers:
            return move.key in TEXT
        return move.key not in ("pixel_values", "input_features", "image_sizes", "inputs_embeds")

    def _fix(self, move: Move) -> Draft | None:
        if move.through is not None:
            return None
        if move.in_place:
            alone = self.flow.stands_alone(move.node)
            return self.flow.fixes.drop_statement(move.node, "leave the inputs on the CPU") if alone else None
        return self.flow.drop_move(move.node)
