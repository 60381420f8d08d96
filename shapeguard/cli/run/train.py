"""`shapeguard run train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shapeguard.cli.run_options import HubNames, runner_options
from shapeguard.cli.run_start import Traced, scratch_folder, start
from shapeguard.core.errors import UsageError
from shapeguard.run.settings import Train

_POSITIVE = click.IntRange(min=1)
_COUNT = click.IntRange(min=0)


@click.command(cls=HubNames, short_help="Train a language model or a classifier with every shape fixed.")
@click.option("--train-file", required=True, metavar="PATH", help="JSONL, text, CSV, or a folder of `datasets`.")
@click.option("--eval-file", default="", metavar="PATH", help="Rows to evaluate on: each counts once.")
@click.option("--task", type=click.Choice(["causal-lm", "classify"]), default="causal-lm", show_default=True,
              help="What to train.")  # fmt: skip
@click.option("--text-column", default="", metavar="NAME", help="The column with texts, chats or token ids.")
@click.option("--label-column", default="label", show_default=True, metavar="NAME", help="For classify.")
@click.option("--packing", is_flag=True, help="Join texts into rows of the largest bucket: no padding.")
@click.option("--output-dir", default="out", show_default=True, metavar="DIR", help="For checkpoints and the model.")
@click.option("--resume-from-checkpoint", default="", metavar="DIR|last", help="Go on from a checkpoint.")
@click.option("--per-device-train-batch-size", type=_POSITIVE, default=8, show_default=True, help="Rows of a batch.")
@click.option("--per-device-eval-batch-size", type=_COUNT, default=0, help="[default: that of training]")
@click.option("--gradient-accumulation-steps", type=_POSITIVE, default=1, show_default=True, help="Batches of a step.")
@click.option("--learning-rate", type=float, default=5e-5, show_default=True, help="The highest.")
@click.option("--weight-decay", type=float, default=0.0, show_default=True, help="Of AdamW.")
@click.option(
    "--max-grad-norm", type=float, default=1.0, show_default=True, help="Gradients are clipped to it; 0: not."
)
@click.option("--lr-scheduler-type", default="linear", show_default=True, help="As transformers names them.")
@click.option("--warmup-steps", type=_COUNT, default=0, show_default=True, help="Of the learning rate.")
@click.option("--num-train-epochs", type=float, default=1.0, show_default=True, help="Passes over the rows.")
@click.option("--max-steps", type=int, default=-1, help="Stop after so many steps, whatever the epochs.")
@click.option("--logging-steps", type=_POSITIVE, default=10, show_default=True, help="Steps between two lines.")
@click.option("--eval-steps", type=_COUNT, default=0, help="Steps between evaluations. [default: once, at the end]")
@click.option(
    "--save-steps", type=_COUNT, default=0, help="Steps between checkpoints. [default: none, the model at the end]"
)
@click.option("--save-total-limit", type=_COUNT, default=0, help="Keep so many checkpoints. [default: all]")
@click.option(
    "--dataloader-drop-last", is_flag=True, help="Leave a short batch out instead of filling it; never in evaluation."
)
@click.option("--bf16", is_flag=True, help="Compute in bfloat16.")
@click.option(
    "--torch-compile/--no-torch-compile", default=True, show_default=True, help="Compile forward and backward."
)
@click.option("--gradient-checkpointing", is_flag=True, help="Trade time for memory.")
@runner_options
def command(**options: Any) -> int:
    """Train a model on rows of one length or of a few: log lines on standard output, as JSON.

    A short last batch is filled with masked rows: no row is lost, no shape is added. So it is in evaluation.
    """
    from shapeguard.run.prompts import rows_of
    from shapeguard.run.training_checks import check

    traced = Traced(**{name: options.pop(name) for name in Traced.__slots__})
    settings = Train(**options)
    if settings.max_steps == 0 or settings.max_steps < -1:
        raise click.UsageError("--max-steps must be at least 1.")
    for file in (settings.train_file, settings.eval_file):
        if file and next(rows_of(file), None) is None:
            raise UsageError(f"{file} holds no rows", hint="give a file with a row a line")
    check(settings)
    with scratch_folder() as scratch:
        return start(settings, traced, warmup_steps=_warmup(settings), scratch=Path(scratch))


def _warmup(settings: Train) -> int:
    """Give how many steps of a phase may compile: the sampler shows every bucket at the start."""
    from shapeguard.buckets.spec import lengths_of
    from shapeguard.run.settings import DEFAULT_BUCKETS

    return max(2, len(lengths_of(settings.buckets)) if settings.buckets else len(DEFAULT_BUCKETS))
