"""SG307."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation

CONFIGS = (
    "SFTConfig",
    "DPOConfig",
    "RewardConfig",
    "KTOConfig",
    "ORPOConfig",
    "CPOConfig",
    "DataCollatorForPreference",
)


class FlattenedRows(Rule):
    """A TRL configuration that flattens its batches, or pads them to the longest row.

    ## Why it costs
    `padding_free` and packing with the strategy "bfd" lay the rows of a batch end to end, so each batch has a length of
    its own. `pad_to_multiple_of=None` switches off the padding to 128 that TRL does on Neuron by itself.

    ## Example
    ```python
    from trl import SFTConfig

    config = SFTConfig("out", packing=True, dataloader_drop_last=True)
    ```

    ## Instead
    ```python
    from trl import SFTConfig

    config = SFTConfig("out", packing=True, packing_strategy="wrapped", max_length=1024, dataloader_drop_last=True)
    ```

    ## Fix
    Unsafe: packs with "wrapped", which cuts all rows to one length; or switches `padding_free` off.
    """

    code = "SG307"
    message = "batches are flattened to a length of their own"
    triggers = (("trl", "packing"), ("trl", "padding_free"), ("trl", "pad_to_multiple_of"))

    def visit_Call(self, call: Invocation) -> None:
        """Look at TRL's configurations."""
        if call.open or not call.is_a("trl", *CONFIGS):
            return
        for node in call.argument("padding_free"):
            if self.flow.only(node) is True:
                fix = self.flow.fixes.replace(node, "False", "do not flatten") if self.flow.is_literal(node) else None
                self.report(node, message="`padding_free=True` flattens each batch to a length of its own", fix=fix)
        for node in call.argument("pad_to_multiple_of"):
            if self.flow.only(node) is None and call.is_a("trl", *CONFIGS[:-1]):
                self.report(node, message="`pad_to_multiple_of=None` pads each batch to its longest row")
        for node in call.argument("packing"):
            if self.flow.only(node) is True and call.constant("packing_strategy", default="bfd") == "bfd":
                fix = self.flow.fixes.set_arguments(call, [("packing_strategy", '"wrapped"')], 'pack with "wrapped"')
                self.report(node, message='packing with "bfd" flattens each batch to a length of its own', fix=fix)
