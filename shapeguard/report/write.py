"""The edge of the reports: where they become bytes on a stream or in a file."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from shapeguard.core.errors import UsageError
from shapeguard.core.files import replace_file
from shapeguard.core.report import Report
from shapeguard.report.reporter import Style, reporter


def write_file(report: Report, form: str, path: str) -> None:
    """Write the report into a file, by rename where the target is a plain file or new."""
    text = reporter(form).render(report, Style(root=_root())).encode("utf-8", "backslashreplace")
    try:
        if path.endswith(("/", os.sep)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        replace_file(Path(path), text)
    except OSError as error:
        raise UsageError(
            f"cannot write {path!r}: {error.strerror or error}", hint="give --output a file in a folder that exists"
        ) from error


def write_stream(report: Report, form: str, *, to_stderr: bool, color: str, quiet: bool, verbose: int) -> None:
    """Write the report to standard output, or beside a running program to standard error."""
    stream: TextIO | None = sys.stderr if to_stderr else sys.stdout
    if stream is None:
        # Closed by the caller (`>&-`): the exit code is all that is wanted.
        return
    renderer = reporter(form)
    style = Style(
        color=wants_color(color, is_terminal=stream.isatty()),
        width=_width(stream),
        root=_root(),
        quiet=quiet,
        verbose=verbose,
    )
    _write(stream, renderer.render(report, style), for_programs=renderer.for_programs)
    if form == "github" and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
        _append(Path(summary), reporter("markdown").render(report, style))
    if not quiet and sys.stderr is not None:
        _write(sys.stderr, "".join(f"{note}\n" for note in report.notes), for_programs=False)


def _write(stream: TextIO, text: str, *, for_programs: bool) -> None:
    # Programs read UTF-8; a person's terminal gets what it can show.
    encoding = "utf-8" if for_programs else (stream.encoding or "utf-8")
    data = text.encode(encoding, "backslashreplace" if encoding.lower().startswith("utf") else "replace")
    buffer: BinaryIO | None = getattr(stream, "buffer", None)
    try:
        stream.flush()
        if buffer is None:
            stream.write(text)
        else:
            buffer.write(data)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror or error}") from error


def _append(summary: Path, text: str) -> None:
    """Add to GitHub's page of the step; annotations without it are better than none."""
    with suppress(OSError), summary.open("a", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)


def _root() -> str:
    return Path.cwd().as_posix()


def _width(stream: TextIO) -> int:
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 100


def wants_color(choice: str, *, is_terminal: bool) -> bool:
    """Whether to colour: the option first, then `NO_COLOR` and `FORCE_COLOR`, then whether a person looks on."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"
