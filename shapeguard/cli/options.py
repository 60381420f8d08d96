"""The options that commands share, and the writing of what a command returns.

A command under `@report_options` (or `@run_options`, where standard output belongs to the traced program) returns a
`Report`, a `Table` or text. The decorator takes the shared options out of the call, and `cli/main.py` hands them with
the result to `emit`, which renders, writes and gives the exit code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import click

from shapeguard.core.errors import ConfigError
from shapeguard.core.report import Report, Table, Text
from shapeguard.report.reporter import format_names

Command = TypeVar("Command", bound=Callable[..., Any])
Result = Report | Table | str | int | None

_OUTPUT = "shapeguard.output"
_DEFAULT_FORMAT = "shapeguard.default-format"
FORMATS = format_names()


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where a report goes and how it is drawn."""

    format: str | None = None
    """The format for the terminal, None where neither an option nor the environment says."""
    files: tuple[tuple[str, str], ...] = ()
    """Pairs of format and path; the path `-` is standard output."""
    color: str = "auto"
    quiet: bool = False
    verbose: int = 0
    to_stderr: bool = False
    """The report is read by people beside the output of the user's own program."""


class FileOutput(click.ParamType["tuple[str, str]"]):
    """`FORMAT=PATH`."""

    name = "format=path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first `=`; the format must be known."""
        if isinstance(value, tuple):
            return value
        form, mark, path = str(value).partition("=")
        if not mark or not path:
            self.fail(f"{value!r} is not FORMAT=PATH, for example json=report.json", param, ctx)
        if form not in FORMATS:
            self.fail(f"{form!r} is not one of {', '.join(FORMATS)}", param, ctx)
        return form, path


def report_options(command: Command) -> Command:
    """Give a command whose result goes to standard output the options of every report."""
    command = _collect(command, to_stderr=False)
    command = click.option("--json", "as_json", is_flag=True, help="The same as --output-format json.")(command)
    command = click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        envvar="SHAPEGUARD_OUTPUT_FORMAT",
        show_envvar=True,
        help="Format of what is printed. [default: full]",
    )(command)
    return _shared(command)


def run_options(command: Command) -> Command:
    """The same for a command that leaves standard output to the program it runs: its report goes to standard error."""
    return _shared(_collect(command, to_stderr=True))


def _shared(command: Command) -> Command:
    for option in (
        click.option("-v", "--verbose", count=True, help="Say more: what was skipped and why."),
        click.option("-q", "--quiet", is_flag=True, help="Print findings and problems, nothing else."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Colour the output; auto: on a terminal, unless NO_COLOR is set.",
        ),
        click.option(
            "--output",
            "files",
            type=FileOutput(),
            multiple=True,
            help=f"Write the report to a file as well, as FORMAT=PATH; repeatable. Formats: {', '.join(FORMATS)}.",
        ),
    ):
        command = option(command)
    return command


def _collect(command: Command, *, to_stderr: bool) -> Command:
    @wraps(command)
    def call(*args: Any, **kwargs: Any) -> Any:
        form = kwargs.pop("output_format", None)
        if kwargs.pop("as_json", False):
            _reject_other_format(form)
            form = "json"
        output = Output(
            format=form,
            files=kwargs.pop("files"),
            color=kwargs.pop("color"),
            quiet=kwargs.pop("quiet"),
            verbose=kwargs.pop("verbose"),
            to_stderr=to_stderr,
        )
        _check_standard_output(output)
        click.get_current_context().meta[_OUTPUT] = output
        return command(*args, **kwargs)

    return call  # type: ignore[return-value]


def _reject_other_format(form: str | None) -> None:
    source = click.get_current_context().get_parameter_source("output_format")
    if form not in (None, "json") and source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--json cannot stand beside --output-format {form}.")


def _check_standard_output(output: Output) -> None:
    standard = [form for form, path in output.files if path == "-"]
    if standard and output.to_stderr:
        raise click.UsageError(
            f"--output {standard[0]}=- : standard output belongs to the program that runs; give a file."
        )
    given = click.get_current_context().get_parameter_source("output_format") is click.core.ParameterSource.COMMANDLINE
    if len(standard) + given > 1:
        raise click.UsageError("Only one report can go to standard output.")


def set_default_format(name: str) -> None:
    """Say what the configuration gives as format; an option or the environment wins."""
    if name not in FORMATS:
        raise ConfigError(f"unknown output format {name!r}", hint=f"use one of: {', '.join(FORMATS)}")
    click.get_current_context().meta[_DEFAULT_FORMAT] = name


def current_output() -> Output:
    """The output options of the command that runs."""
    meta = click.get_current_context().meta
    output: Output = meta.get(_OUTPUT, Output())
    # Beside a running program the report is for people, whatever other commands write.
    return output if output.to_stderr else replace(output, format=output.format or meta.get(_DEFAULT_FORMAT))


def as_report(result: Report | Table | str) -> Report:
    """Wrap what a command returned, so that every format can write it."""
    if isinstance(result, Report):
        return result
    section = Text(text=result) if isinstance(result, str) else result
    return Report(tool="", sections=(section,))


def emit(report: Report, options: Output) -> int:
    """Write the report where the options say, and give its exit code."""
    from shapeguard.report.write import write_file, write_stream

    standard = next((form for form, path in options.files if path == "-"), None)
    for form, path in options.files:
        if path != "-":
            write_file(report, form, path)
    is_short = options.quiet and report.when_quiet is not None
    write_stream(
        replace(report, sections=report.when_quiet or ()) if is_short else report,
        standard or options.format or "full",
        to_stderr=options.to_stderr,
        color=options.color,
        quiet=options.quiet,
        verbose=options.verbose,
    )
    return int(report.exit_code)
