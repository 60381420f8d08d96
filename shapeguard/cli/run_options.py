"""The options that both runners share, in both of the spellings that Hugging Face's users write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from shapeguard.cli.options import run_options
from shapeguard.run.settings import DEVICES, DTYPES

Command = TypeVar("Command", bound=Callable[..., Any])
_POSITIVE = click.IntRange(min=1)


class HubNames(click.Command):
    """A command that takes `--max_new_tokens` for `--max-new-tokens`, as scripts of transformers write it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Respell options; values and everything after `--` stay as they are."""
        known = {name for param in self.params if isinstance(param, click.Option) for name in param.opts}
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [_dashed(word, known) for word in args[:end]] + args[end:])


def _dashed(word: str, known: set[str]) -> str:
    name, mark, value = word.partition("=")
    dashed = name.replace("_", "-")
    return dashed + mark + value if name.startswith("--") and dashed in known else word


def runner_options(command: Command) -> Command:
    """Give a runner its model, its device, its buckets, and the options of a traced run."""
    for option in (
        click.option("--locked", is_flag=True, envvar="SHAPEGUARD_LOCKED",
                     help="Exit 1 if a graph compiles that shapeguard.lock does not name."),
        click.option("--no-cache", is_flag=True, help="Do not keep what was seen in the graph cache."),
        click.option("--stub-weights", is_flag=True, help="Build the model from its configuration, read no weights."),
        click.option("--target", type=click.Choice(["trn2", "trn3"]), default="trn2", show_default=True,
                     help="The chip that graphs are compiled for."),
        click.option("--inner", type=click.Choice(["cpu", "meta"]), default="cpu", show_default=True,
                     help="What the simulated device computes on."),
        click.option("--run-dir", type=click.Path(path_type=Path), help="Folder of the run on the simulated device."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of everything random."),
        click.option("--truncate", is_flag=True, help="Cut what fits no bucket, instead of refusing it."),
        click.option("--buckets", default="", metavar="LIST",
                     help="Lengths to pad to: 128,512 or a buckets.toml. [default: 128,512]"),
        click.option("--fsdp", type=_POSITIVE, default=1, show_default=True, help="Devices that share the weights."),
        click.option("--tp", type=_POSITIVE, default=1, show_default=True, help="Devices that share each layer."),
        click.option("--dtype", type=click.Choice(DTYPES), default="auto", show_default=True,
                     help="Of the weights; auto is the checkpoint's own."),
        click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True,
                     help="auto: Neuron where there is one, else the simulated device."),
        click.option("--model", required=True, metavar="NAME", help="A folder, or a name on the Hugging Face hub."),
    ):  # fmt: skip
        command = option(command)
    return run_options(command)
