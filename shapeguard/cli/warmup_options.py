"""The options of `shapeguard warmup`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from shapeguard.cli.cache_options import Size

Command = TypeVar("Command", bound=Callable[..., Any])
_SPANS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType["float"]):
    """A time, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read `90`, `90s`, `30m`, `2h`."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip().lower())
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is no time, for example 90s, 30m or 2h", param, ctx)
        return float(match[1]) * _SPANS[match[2]]


class AtOnce(click.ParamType["int"]):
    """A number of recipes at once, or `auto`."""

    name = "n|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Give 0 for `auto`."""
        if isinstance(value, int):
            return value
        if value == "auto":
            return 0
        if not str(value).isdigit() or int(value) < 1:
            self.fail(f"{value!r} is neither a number from 1 up nor auto", param, ctx)
        return int(value)


def warmup_options(command: Command) -> Command:
    """Give a command the options of a warm-up."""
    file, folder = click.Path(dir_okay=False, path_type=Path), click.Path(file_okay=False, path_type=Path)
    decorated: Any = command
    for option in (
        click.option("--progress/--no-progress", default=None, help="A line for each recipe. [default: on a terminal]"),
        click.option("--neuron-cores", type=click.IntRange(min=1), help="NeuronCores to share out. [default: enough]"),
        click.option(
            "--sim-speed",
            type=click.FloatRange(min=0),
            default=1000.0,
            show_default=True,
            help="How many times faster than guessed a simulated compile is; 0: it takes no time.",
        ),
        click.option(
            "--device",
            type=click.Choice(["auto", "neuron", "sim"]),
            default="auto",
            show_default=True,
            help="auto: Neuron where there is a device, else simulated; with --check always Neuron.",
        ),
        click.option("--executor", default="local", show_default=True, help="Where recipes run: local, ray."),
        click.option(
            "--check",
            type=file,
            metavar="STATEMENT",
            help="Run nothing: exit 1 if a statement does not hold for this lock, toolchain and device.",
        ),
        click.option(
            "--statement", type=file, help="What --verify writes. [default: .shapeguard/warmup/statement.json]"
        ),
        click.option("--resume", is_flag=True, help="Go on with a warm-up that was broken off."),
        click.option("--compile/--no-compile", "compiles", default=True, help="Whether what is missing is compiled."),
        click.option(
            "--verify", is_flag=True, help="Run all jobs again with compiling forbidden, and say it in writing."
        ),
        click.option("--dry-run", is_flag=True, help="Only say what would be done, and what it costs."),
        click.option(
            "--order",
            type=click.Choice(["lock", "cost"]),
            default="cost",
            show_default=True,
            help="Which recipe begins first: as in the lock, or the longest.",
        ),
        click.option("--shard", metavar="I/N", default="1/1", help="Run part I of N, for N machines."),
        click.option(
            "--keep-going/--fail-fast",
            "keep_going",
            default=True,
            show_default=True,
            help="Whether the others run on where one recipe fails.",
        ),
        click.option(
            "--retries", type=click.IntRange(min=0), default=1, show_default=True, help="Tries after the first."
        ),
        click.option("--timeout", type=Duration(), help="How long one try may take: 90s, 30m, 2h. [default: any time]"),
        click.option(
            "--max-memory", type=Size(), help="What all recipes may hold together. [default: 90% of what is free]"
        ),
        click.option(
            "-j", "at_once", type=AtOnce(), default=0, help="Recipes at once; auto: by processors and memory."
        ),
        click.option("--push", is_flag=True, help="Send what is compiled to the remote afterwards."),
        click.option(
            "--remote", metavar="URL", help="Pull from here first: s3://bucket/folder, gs://, az://, file:///."
        ),
        click.option(
            "--cache-dir", type=folder, help="Folder of the graph cache. [default: as for `shapeguard cache`]"
        ),
        click.option(
            "--neff-dir",
            type=folder,
            help="Folder of compiled files. [default: TORCH_NEURONX_NEFF_CACHE_DIR, or .shapeguard/neffs]",
        ),
        click.option("--lock", "lock_file", type=file, help="The lock. [default: shapeguard.lock of the project]"),
    ):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
