"""`shapeguard run infer`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from shapeguard.cli.run_options import HubNames, runner_options
from shapeguard.cli.run_start import Traced, scratch_folder, start
from shapeguard.core.errors import UsageError
from shapeguard.run.settings import POOLINGS, TASKS, Infer

_POSITIVE = click.IntRange(min=1)


@click.command(cls=HubNames, short_help="Generate, embed or classify with every shape fixed.")
@click.argument("prompts", nargs=-1)
@click.option("--file", default="", metavar="FILE", help="Prompts as text, JSONL or CSV; `-` is standard input.")
@click.option("--column", default="", metavar="NAME", help="The column with the prompts, texts or chats.")
@click.option(
    "--task", type=click.Choice(TASKS), default="auto", show_default=True, help="auto: what the model is for."
)
@click.option("--batch-size", type=_POSITIVE, default=8, show_default=True, help="Rows of every batch.")
@click.option("--max-new-tokens", type=_POSITIVE, default=64, show_default=True, help="The budget of each prompt.")
@click.option("--do-sample", is_flag=True, help="Sample instead of taking the likeliest token.")
@click.option("--temperature", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True,
              help="For --do-sample.")  # fmt: skip
@click.option("--top-k", type=click.IntRange(min=0), default=50, show_default=True, help="For --do-sample; 0: all.")
@click.option("--top-p", type=click.FloatRange(min=0, max=1, min_open=True), default=1.0, show_default=True,
              help="For --do-sample.")  # fmt: skip
@click.option("--pooling", type=click.Choice(POOLINGS), default="mean", show_default=True, help="Of embeddings.")
@click.option("--normalize/--no-normalize", default=True, show_default=True, help="Embeddings of length 1.")
@click.option("--stream", is_flag=True, help="Write pieces of text as they are generated.")
@click.option("--text", is_flag=True, help="Write texts alone instead of JSON lines.")
@runner_options
def command(prompts: tuple[str, ...], file: str, **options: Any) -> int:
    """Run PROMPTS, or those of a file, through a model: results on standard output, in the order of the prompts.

    Prompts are padded on the left to a few lengths, the last batch is filled, and the static cache has one length:
    one decode graph, and one set of prefill operators for each bucket.
    """
    from shapeguard.run.prompts import read_prompts

    if bool(prompts) == bool(file):
        raise click.UsageError(
            "Give prompts as arguments, or --file, not both." if file else "No prompts: give some, or --file."
        )
    if options["stream"] and options["text"] and len(prompts) != 1:
        raise click.UsageError("--stream with --text writes one prompt's text: give one prompt, or leave out --text.")
    traced = Traced(**{name: options.pop(name) for name in Traced.__slots__})
    with scratch_folder() as scratch:
        path, shown = _spooled(file, Path(scratch))
        settings = Infer(prompts=prompts, file=path, shown=shown, **options)
        # Read here too: a broken line is told at once, not after torch has been loaded.
        read_prompts(prompts, path, column=settings.column, shown=shown)
        return start(settings, traced, warmup_steps=_warmup(settings), scratch=Path(scratch))


def _spooled(file: str, folder: Path) -> tuple[str, str]:
    """Give the file to read; standard input is kept in one, since ranks of torchrun have none."""
    from shapeguard.run.launch import is_rank

    if file != "-":
        return file, ""
    if is_rank(os.environ):
        raise UsageError("ranks of torchrun have no standard input", hint="give --file a file")
    data = sys.stdin.buffer.read()
    kind = "jsonl" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b'"') else "txt"
    path = folder / f"prompts.{kind}"
    path.write_bytes(data)
    return str(path), "standard input"


def _warmup(settings: Infer) -> int:
    """Give how many steps of a phase may compile: each bucket's first batch."""
    from shapeguard.buckets.spec import lengths_of
    from shapeguard.run.settings import DEFAULT_BUCKETS

    number = len(lengths_of(settings.buckets)) if settings.buckets else len(DEFAULT_BUCKETS)
    return number * settings.max_new_tokens if settings.task in ("auto", "generate") else number
