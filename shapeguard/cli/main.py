"""The command group: finds commands, has what they return written, sets the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from shapeguard import __version__
from shapeguard.cli import commands
from shapeguard.cli.options import Output, as_report, current_output, emit
from shapeguard.core.errors import Exit, ShapeguardError
from shapeguard.core.plugins import names
from shapeguard.core.report import Report, Table


class Commands(click.Group):
    """One command a file of `cli/commands`; a file is imported when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the files of the folder."""
        return [name.rstrip("_").replace("_", "-") for name in names(commands)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command's file."""
        # A word of Python's own has a trailing underscore in its file's name.
        module = next((each for each in names(commands) if each.rstrip("_") == name.replace("-", "_")), None)
        if module is None:
            return None
        command = import_module(f"{commands.__name__}.{module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what was meant where a command does not exist."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command returned, and what its options say about writing it."""

    result: object
    output: Output


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="shapeguard %(version)s")
def group() -> None:
    """Keep PyTorch and Hugging Face jobs on AWS Trainium on static shapes."""


@group.result_callback()
def _keep(result: object, **_: Any) -> Outcome:
    # Written after click has left: click answers a closed pipe by itself, with exit code 1.
    return Outcome(result=result, output=current_output())


def main(argv: Sequence[str]) -> int:
    """Run the command line and give its exit code; nothing is raised."""
    try:
        os.getcwd()  # noqa: PTH109 - asked for its error
    except OSError:
        return _say("error: the working directory does not exist any more", "change to one that does", Exit.FAILED)
    try:
        return _finish(group.main(args=list(argv), prog_name="shapeguard", standalone_mode=False))
    except ShapeguardError as error:
        return _say(f"error: {error.message}", error.hint, error.exit_code)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return int(Exit.FAILED)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        return _reader_went_away()
    except Exception:
        # Here, since it costs 20 ms of every start.
        import traceback

        traceback.print_exc()
        return _say("error: this is a bug in shapeguard", "please report it with the lines above", Exit.FAILED)


def _finish(outcome: object) -> int:
    if isinstance(outcome, Outcome):
        if isinstance(outcome.result, (Report, Table, str)):
            return emit(as_report(outcome.result), outcome.output)
        outcome = outcome.result
    return outcome if isinstance(outcome, int) else int(Exit.CLEAN)


def _reader_went_away() -> int:
    """End as a program does whose reader closed the pipe (`| head`), without Python's complaint at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13


def _say(message: str, hint: str, code: Exit) -> int:
    click.echo(message, err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    return int(code)
