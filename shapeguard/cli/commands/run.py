"""`shapeguard run`: the reference runners. One runner a file in `cli/run`."""

from __future__ import annotations

import click

from shapeguard.cli.run.infer import command as infer
from shapeguard.cli.run.train import command as train


@click.group(short_help="Generate or train with every shape fixed.", commands={"infer": infer, "train": train})
def command() -> None:
    """Run a model the way that keeps Neuron from compiling again: to use, to copy from, to warm up with.

    On the simulated device without a Trainium, on it with one. Where --tp × --fsdp is more than 1, torchrun is started.
    """
