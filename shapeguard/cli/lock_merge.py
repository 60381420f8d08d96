"""`shapeguard lock merge`: git's merge driver for the lock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.configured import Configs
from shapeguard.cli.options import report_options
from shapeguard.core.errors import ConfigError, Exit, UsageError
from shapeguard.core.finding import Problem
from shapeguard.core.report import Report

if TYPE_CHECKING:
    from shapeguard.checks.settings import JobSettings


@click.command(name="merge")
@click.argument("words", nargs=-1, metavar="BASE OURS THEIRS [PATH]")
@report_options
def merge(words: tuple[str, ...]) -> Report:
    """Join what two branches added to the lock, write it into OURS, and count again.

    Git calls it: `git config merge.shapeguard.driver 'shapeguard lock merge %O %A %B %P'`, and in .gitattributes
    `shapeguard.lock merge=shapeguard`. Exit code 1: joined, but over a limit that neither branch passes.
    """
    from shapeguard.checks.locking import write
    from shapeguard.checks.merging import merged

    if len(words) not in (3, 4):
        raise UsageError(
            "lock merge needs three files: the base, ours and theirs",
            hint="git config merge.shapeguard.driver 'shapeguard lock merge %O %A %B %P'",
        )
    files = [Path(word) for word in words[:3]]
    name = words[3] if len(words) == 4 else words[1]
    known, notes = _jobs(Path(name).parent)
    result = merged(files, known, name=name)
    write(files[1], result.lock)
    graphs = len(result.lock.graphs)
    said = [f"{name}: {graphs:,} graph{'' if graphs == 1 else 's'} after the merge"]
    if result.over:
        said.append(
            "over the limit: mend the code or raise the limit, then `git add` the file and commit; "
            "`shapeguard check --static` counts again with the merged configuration"
        )
    return Report(
        tool="lock",
        problems=tuple(Problem(path=name, message=text) for text in result.over),
        document={"schema": 1, "file": name, "graphs": graphs, "over": list(result.over)},
        summary=tuple(said),
        notes=notes,
        exit_code=Exit.FINDINGS if result.over else Exit.CLEAN,
    )


def _jobs(folder: Path) -> tuple[Mapping[str, JobSettings], tuple[str, ...]]:
    """Give the jobs of the configuration beside the lock; in the middle of a merge it may be in conflict itself."""
    try:
        return Configs(file=None, is_isolated=False).at(folder).settings.jobs, ()
    except ConfigError as error:
        return {}, (f"note: the limits were not counted again: {error.message}",)
