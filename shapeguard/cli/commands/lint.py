"""`shapeguard lint`."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shapeguard.cli.configured import Configs, config_options
from shapeguard.cli.options import report_options
from shapeguard.core.report import Report, Table, Text

if TYPE_CHECKING:
    from shapeguard.lint.engine import LintRun
    from shapeguard.lint.outcome import View
    from shapeguard.lint.scope import Scope
    from shapeguard.lint.settings import LintSettings


class Codes(click.ParamType["tuple[str, ...]"]):
    """Rule codes or their beginnings, separated by commas."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Split at commas and blanks."""
        return value if isinstance(value, tuple) else tuple(str(value).replace(",", " ").split())


class PathCodes(click.ParamType["tuple[str, str]"]):
    """`PATTERN:CODE`."""

    name = "pattern:code"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the last colon, so that a drive letter stays with the pattern."""
        if isinstance(value, tuple):
            return value
        pattern, mark, code = str(value).strip().rpartition(":")
        if not mark or not pattern or not code:
            self.fail(f"{value!r} is not PATTERN:CODE, for example tests/*:SG304", param, ctx)
        return pattern, code


@click.command(short_help="Find code that will recompile.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--select", type=Codes(), multiple=True, help="Check these codes or beginnings only; ALL is every rule.")
@click.option("--ignore", type=Codes(), multiple=True, help="Leave these codes or beginnings out.")
@click.option("--extend-select", type=Codes(), multiple=True, help="Check these codes as well.")
@click.option(
    "--per-file-ignores",
    type=PathCodes(),
    multiple=True,
    help="Leave a code out in the files of a pattern, as PATTERN:CODE; repeatable.",
)
@click.option("--exclude", multiple=True, help="Leave out paths that match, beside those of the configuration.")
@click.option(
    "--force-exclude/--no-force-exclude",
    default=None,
    help="Leave excluded files out even when they are named, as pre-commit does.",
)
@click.option("--fix/--no-fix", default=None, help="Apply the safe fixes.")
@click.option(
    "--unsafe-fixes/--no-unsafe-fixes",
    default=None,
    help="With --fix or --diff: apply the unsafe fixes too, which may change what the program does.",
)
@click.option("--diff", is_flag=True, help="Write nothing; print what --fix would change.")
@click.option("--statistics", is_flag=True, help="Print how often each rule spoke instead of the findings.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even if there are findings; failures still exit 2 or 3.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit 1 if a file was changed, even if nothing is left.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Do not report the findings of this file.")
@click.option("--write-baseline", type=click.Path(path_type=Path), help="Write all findings to this file; report none.")
@click.option(
    "-n", "--no-cache", is_flag=True, envvar="SHAPEGUARD_NO_CACHE", show_envvar=True, help="Use no result cache."
)
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the result cache. [default: .shapeguard_cache beside the configuration]",
)
@click.option(
    "--stdin-filename", type=click.Path(path_type=Path), help="Name of the text on standard input, with the path `-`."
)
@click.option("--show-files", is_flag=True, help="Print the files that would be checked.")
@click.option("-j", "--jobs", type=click.IntRange(min=0), help="Processes over files. [default: one a processor]")
@click.option(
    "--with-run",
    type=click.Path(path_type=Path),
    help="Rank the findings by what they cost in this run of `shapeguard trace`.",
)
@click.option("--timing", is_flag=True, help="Print where the time went.")
@config_options
@report_options
def command(configs: Configs, paths: tuple[Path, ...], **given: Any) -> Report:
    """Find code in PATHS (files or folders) that will make the Neuron compiler start again.

    Without PATHS the working directory is checked; `-` is standard input. Exit code 0: nothing found, 1: findings,
    2: it could not be done.
    """
    from shapeguard.lint.engine import collect
    from shapeguard.lint.outcome import lint_report

    scopes = _Scopes(configs, given)
    is_stdin = Path("-") in paths
    if is_stdin and len(paths) > 1:
        raise click.UsageError("`-` cannot stand beside other paths.")
    if given["stdin_filename"] and not is_stdin:
        raise click.UsageError("--stdin-filename needs the path `-`.")
    if given["show_files"] and not is_stdin:
        return _shown_files(collect(paths or (Path(),), scopes.at)[0])
    view = _view(scopes, given)
    if is_stdin:
        return _from_stdin(scopes, given, view)
    return lint_report(_with_run(_run(paths or (Path(),), scopes, given), given["with_run"]), view)


def _with_run(found: LintRun, folder: Path | None) -> LintRun:
    if folder is None:
        return found
    from shapeguard.runs.join import ranked
    from shapeguard.runs.stream import read_run
    from shapeguard.runs.summary import summarise

    return replace(found, findings=ranked(found.findings, summarise(read_run(folder))))


class _Scopes:
    """The linter's settings by folder, with the options of the command line laid over."""

    def __init__(self, configs: Configs, given: dict[str, Any]) -> None:
        self._configs = configs
        self._given = given
        self._transformers = _installed_transformers()
        self._known: dict[int, Scope] = {}
        self.here = self.at(Path())
        self.no_cache = configs.here.settings.no_cache

    def at(self, folder: Path) -> Scope:
        """The scope of the files of a folder."""
        from shapeguard.lint.scope import Scope

        config = self._configs.at(folder)
        if id(config) not in self._known:
            settings = _overlaid(config.settings.lint, self._given)
            self._known[id(config)] = Scope(
                root=config.root, settings=settings, installed_transformers=self._transformers
            )
        return self._known[id(config)]


def _overlaid(settings: LintSettings, given: dict[str, Any]) -> LintSettings:
    changes: dict[str, Any] = {}
    if given["select"]:
        # A selection on the command line starts afresh, as it does in ruff.
        changes |= {"select": _joined(given["select"]), "ignore": (), "extend_select": ()}
    if given["ignore"]:
        changes["ignore"] = (*changes.get("ignore", settings.ignore), *_joined(given["ignore"]))
    if given["extend_select"]:
        changes["extend_select"] = (
            *changes.get("extend_select", settings.extend_select),
            *_joined(given["extend_select"]),
        )
    if given["per_file_ignores"]:
        rows = {pattern: tuple(codes) for pattern, codes in settings.per_file_ignores.items()}
        for pattern, code in given["per_file_ignores"]:
            rows[pattern] = (*rows.get(pattern, ()), code)
        changes["per_file_ignores"] = rows
    if given["exclude"]:
        changes["extend_exclude"] = (*settings.extend_exclude, *given["exclude"])
    for name in ("force_exclude", "fix", "unsafe_fixes"):
        if given[name] is not None:
            changes[name] = given[name]
    return replace(settings, **changes)


def _joined(groups: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(code for group in groups for code in group)


def _view(scopes: _Scopes, given: dict[str, Any]) -> View:
    from shapeguard.lint.outcome import View

    here = scopes.here
    configured = here.root / here.settings.baseline if here.settings.baseline else None
    return View(
        baseline=given["baseline"] or configured,
        write_baseline=given["write_baseline"],
        is_fixing=here.settings.fix and not given["diff"],
        is_diff=given["diff"],
        has_statistics=given["statistics"],
        has_timing=given["timing"],
        is_exit_zero=given["exit_zero"],
        is_exit_non_zero_on_fix=given["exit_non_zero_on_fix"],
    )


def _run(paths: tuple[Path, ...], scopes: _Scopes, given: dict[str, Any]) -> LintRun:
    from shapeguard.lint.engine import LintOptions, lint_paths

    settings = scopes.here.settings
    folder = given["cache_dir"] or scopes.here.root / (settings.cache_dir or ".shapeguard_cache")
    options = LintOptions(
        fix=_fix_mode(settings, given),
        is_diff=given["diff"],
        jobs=given["jobs"] or settings.jobs or _processors(),
        cache_folder=None if given["no_cache"] or scopes.no_cache else folder,
    )
    return lint_paths(paths, scope_for=scopes.at, options=options)


def _fix_mode(settings: LintSettings, given: dict[str, Any]) -> Any:
    if given["write_baseline"] or not (settings.fix or given["diff"]):
        return "off"
    return "unsafe" if settings.unsafe_fixes else "safe"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _from_stdin(scopes: _Scopes, given: dict[str, Any], view: View) -> Report:
    from shapeguard.lint.engine import LintOptions, lint_text
    from shapeguard.lint.outcome import lint_report
    from shapeguard.lint.scope import whole_path

    name: Path = given["stdin_filename"] or Path("-")
    scope = scopes.at(name.parent)
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    if scope.settings.force_exclude and scope.is_excluded(whole_path(name)):
        return Report(tool="lint", sections=(Text(text=_text(data), is_verbatim=True),) if view.is_fixing else ())
    options = LintOptions(fix=_fix_mode(scopes.here.settings, given), is_diff=given["diff"])
    run = lint_text(data, path=name.as_posix(), scope=scope, options=options)
    report = lint_report(run, view)
    if not view.is_fixing:
        return report
    # Standard output is the mended text; what is left goes where it does not disturb.
    return replace(report, sections=(Text(text=run.new_text, is_verbatim=True),), notes=_beside(report))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _beside(report: Report) -> tuple[str, ...]:
    from shapeguard.report.reporter import Style, reporter

    left = reporter("concise").render(replace(report, sections=()), Style())
    return (*left.splitlines(), *report.notes)


def _shown_files(sources: Any) -> Report:
    rows = tuple((source.path,) for source in sources)
    return Report(tool="lint", sections=(Table(columns=("",), rows=rows),), document={"files": [r[0] for r in rows]})


def _installed_transformers() -> tuple[int, int] | None:
    """The version of transformers that stands beside shapeguard, without importing it or reading metadata."""
    for folder in sys.path:
        try:
            names = [item.name for item in Path(folder).iterdir()]
        except OSError:
            continue
        for name in names:
            if match := re.match(r"transformers-(\d+)\.(\d+)[^-]*\.(?:dist-info|egg-info)", name):
                return int(match[1]), int(match[2])
    return None
