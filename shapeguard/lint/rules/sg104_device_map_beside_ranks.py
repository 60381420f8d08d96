"""SG104."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapeguard.lint.rule import Rule

if TYPE_CHECKING:
    from shapeguard.lint.flow.calls import Invocation


class DeviceMapBesideRanks(Rule):
    """A `device_map` beside a `distributed_config`, or sizes that do not match the launch.

    ## Why it costs
    `DistributedConfig` places the shards on the ranks that torchrun starts; a `device_map` beside it places the model a
    second time. The number of processes is tp_size times fsdp_size: another number cannot start.

    ## Example
    ```python
    from transformers import AutoModelForCausalLM
    from transformers.distributed import DistributedConfig

    sizes = DistributedConfig(tp_size=2)
    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", device_map="neuron", distributed_config=sizes)
    ```

    ## Instead
    ```python
    from transformers import AutoModelForCausalLM
    from transformers.distributed import DistributedConfig

    model = AutoModelForCausalLM.from_pretrained("acme/tiny-lm", distributed_config=DistributedConfig(tp_size=2))
    ```

    ## Fix
    None: which of the two is meant is for you to say.
    """

    code = "SG104"
    message = "`device_map` beside `distributed_config` places the model twice"
    triggers = (("distributed_config", "device_map"), ("DistributedConfig", "nprocs"))
    gate = (
        ("(distributed_config", "(device_map"),
        *(("from_pretrained(**", f"{how}distributed_config") for how in "({["),
        ("DistributedConfig()", "(nprocs"),
    )

    def visit_Call(self, call: Invocation) -> None:
        """Look at what loads a model, and at launches in the file."""
        if call.method in ("from_pretrained", "from_config") and call.argument("distributed_config"):
            for node in call.argument("device_map"):
                if self.flow.only(node) is not None:
                    self.report(node)
        if call.is_a("transformers", "DistributedConfig"):
            self._sizes(call)

    def _sizes(self, call: Invocation) -> None:
        sizes = [call.constant(name, default=1) for name in ("tp_size", "fsdp_size")]
        if not all(isinstance(size, int) for size in sizes):
            return
        wanted = int(str(sizes[0])) * int(str(sizes[1]))
        for launch in self.flow.calls:
            if launch.method in ("spawn", "start_processes") and launch.argument("nprocs", 2):
                given = self.flow.only(launch.argument("nprocs", 2)[0])
                if isinstance(given, int) and given != wanted:
                    self.report(call.node, message=f"sizes for {wanted} processes, but the file starts {given}")
