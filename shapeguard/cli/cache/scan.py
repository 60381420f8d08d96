"""`shapeguard cache scan`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shapeguard.cli.cache_options import cache_options
from shapeguard.cli.options import report_options
from shapeguard.core.errors import UsageError
from shapeguard.core.report import Report

if TYPE_CHECKING:
    from shapeguard.cache.link import Linked
    from shapeguard.cache.neff_folder import NeffFolder


@click.command(short_help="List compiled files (NEFFs), with their graphs.")
@click.option(
    "--neff-dir",
    type=click.Path(file_okay=False, path_type=Path),
    multiple=True,
    help="Folder of NEFFs; repeatable. [default: those the Neuron stacks read here]",
)
@click.option("--verify", is_flag=True, help="Compare size and SHA-256 with the records; exit 1 where they differ.")
@click.option("--link", "keep", is_flag=True, help="Write each file's size and SHA-256 into the record of its graph.")
@click.option("--limit", type=click.IntRange(min=0), default=50, show_default=True, help="Rows to show; 0 is all.")
@cache_options
@report_options
def command(folder: Path, neff_dir: tuple[Path, ...], verify: bool, keep: bool, limit: int) -> Report:
    """List the compiled files in the folders of TorchNeuron and torch-xla: state, size, and the graph they are of."""
    from shapeguard.cache.link import link, with_neffs
    from shapeguard.cache.neff_folder import look, neff_folders
    from shapeguard.cache.neff_view import scanned
    from shapeguard.cache.store import GraphCache
    from shapeguard.cache.view import with_skipped

    roots = neff_dir or tuple(neff_folders(os.environ))
    if not roots:
        raise UsageError("there is no folder of NEFFs here", hint="give one with --neff-dir")
    found: list[tuple[NeffFolder, list[Linked]]] = []
    num_kept = 0
    with GraphCache(folder, for_reading=not keep) as cache:
        records = [*cache.records(), *cache.records(eager=True)]
        for root in roots:
            there = look(root)
            linked = link(there, records, verify=verify)
            found.append((there, linked))
            if keep:
                num_kept += len(kept := with_neffs(there, linked))
                cache.put_many(kept)
    return with_skipped(scanned(found, limit=limit, num_kept=num_kept if keep else None), cache.skipped)
