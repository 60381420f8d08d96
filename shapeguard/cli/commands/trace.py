"""`shapeguard trace`: every compile that a program would cause on Neuron."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.limits import LIMITS, find_lock, passed
from shapeguard.cli.options import current_output, emit, run_options
from shapeguard.core.errors import ShapeguardError, UsageError

if TYPE_CHECKING:
    from shapeguard.trace.world import World

_WORDS = "shapeguard.trace.words"
_ELSEWHERE = ("--json", "--output-format")


class Program(click.Command):
    """A command whose own options end where the traced program begins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read our own options; what follows is the program's, whatever it looks like."""
        end = self._own(args)
        rest = super().parse_args(ctx, args[:end])
        ctx.meta[_WORDS] = args[end:]
        if not args[end:]:
            raise click.UsageError("No program was given: write `shapeguard trace train.py`.", ctx=ctx)
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Name the program in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[--] PROGRAM [ARGS]..."]

    def _own(self, args: list[str]) -> int:
        valued = {o for p in self.params if isinstance(p, click.Option) and not (p.is_flag or p.count) for o in p.opts}
        position = 0
        while position < len(args):
            word = args[position]
            if word in _ELSEWHERE or word.startswith("--output-format="):
                raise click.UsageError(
                    f"{word.partition('=')[0]}: standard output belongs to the traced program; "
                    "write --output json=PATH instead."
                )
            if word in ("--", "-m") or not word.startswith("-") or word == "-":
                return position
            position += 2 if word in valued else 1
        return position


def _target(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from shapeguard.trace.settings import TARGETS

    if value not in TARGETS:
        known = " or ".join(TARGETS)
        reason = "torch_neuronx runs on Trn2 and Trn3 only" if value == "trn1" else f"{value!r} is not known"
        raise click.BadParameter(f"{reason}; use {known}.", ctx=ctx, param=param)
    return value


@click.command(cls=Program, short_help="Run a program and show what Neuron would compile.")
@click.option("-m", "_", metavar="MODULE", expose_value=False, help="Run a module, as `python -m` does.")
@click.option(
    "--run-dir", type=click.Path(path_type=Path), help="Folder for the run. [default: .shapeguard/runs/NAME-N]"
)
@click.option(
    "--device",
    type=click.Choice(["auto", "neuron", "sim", "cpu"]),
    default="auto",
    show_default=True,
    help="What the program runs on; auto is a real Neuron device where there is one, else the simulated one.",
)
@click.option(
    "--inner",
    type=click.Choice(["cpu", "meta"]),
    default="cpu",
    show_default=True,
    help="What the simulated device computes on; meta computes nothing and takes a model of any size.",
)
@click.option(
    "--target",
    callback=_target,
    default="trn2",
    show_default=True,
    metavar="trn2|trn3",
    help="The chip that graphs are compiled for; part of every key.",
)
@click.option(
    "--devices", "num_devices", type=click.IntRange(min=1), default=1, show_default=True, help="Visible devices."
)
@click.option(
    "--world",
    metavar="SIZES",
    help="Run a rank of a world whose other ranks are not there: tp=2,fsdp=2, or the number of ranks.",
)
@click.option("--rank", metavar="N|all", help="The ranks of --world to run, one after the other. [default: 0]")
@click.option("--stub-weights", is_flag=True, help="Build models from their configuration, read no weights.")
@click.option("--max-steps", type=click.IntRange(min=1), help="End the program after so many steps, with exit code 0.")
@click.option("--warmup-steps", type=click.IntRange(min=0), default=2, show_default=True, help="Warm-up of each phase.")
@click.option("--no-cache", is_flag=True, help="Do not keep what was seen in the graph cache.")
@click.option(
    "--fail-on",
    type=click.Choice(LIMITS),
    help="Exit 1 if the program succeeded and a region compiled that the lock does not have (without a lock: "
    "after warm-up), after warm-up, or at all. Ranks that diverge are over every limit.",
)
@run_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    run_dir: Path | None,
    fail_on: str | None,
    no_cache: bool,
    world: str | None,
    rank: str | None,
    **settings: object,
) -> int:
    """Run PROGRAM on a Neuron device, simulated or real, and show every graph it would compile, with cause and line.

    PROGRAM is a .py file or `-m MODULE`; anything else follows `--`, such as `-- torchrun --nproc-per-node 4 train.py`.
    Its output and its exit code are its own; the report follows on standard error.
    """
    from shapeguard.runs.remember import remember
    from shapeguard.runs.view import report
    from shapeguard.trace.program import program
    from shapeguard.trace.settings import Settings
    from shapeguard.trace.supervise import trace

    if settings["device"] == "cpu":
        raise UsageError("--device cpu compiles nothing for Neuron: there is nothing to trace", hint="use --device sim")
    wanted = program(ctx.meta[_WORDS])
    lock = find_lock(fail_on)
    simulated = _world(world, rank)
    traced = trace(wanted, Settings(**settings), run_dir=run_dir, world=simulated, say=_say)  # type: ignore[arg-type]
    # After the run: what the cache knows never changes a count.
    if not no_cache and (note := remember(traced.folder, os.environ)):
        _say(note)
    reason = passed(fail_on, traced.summary, lock)
    code = traced.exit_code or int(bool(reason))
    try:
        emit(report(traced.summary, folder=_shown(traced.folder), root=Path.cwd()), current_output())
    except (ShapeguardError, OSError) as error:
        _say(f"error: {error}")
        return code or 2
    if code and not traced.exit_code:
        _say(f"exit {code}: --fail-on {fail_on}: {reason}")
    return code


def _world(sizes: str | None, ranks: str | None) -> World | None:
    from shapeguard.trace.world import world

    if sizes is None:
        if ranks is not None:
            raise UsageError(
                "--rank names a rank of a simulated world", hint="add --world, such as --world tp=2,fsdp=2"
            )
        return None
    return world(sizes, ranks if ranks is not None else "0")


def _shown(folder: Path) -> str:
    here = Path.cwd().resolve()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _say(text: str) -> None:
    click.echo(text, err=True)
