"""`shapeguard doctor`: what of Neuron is installed here, who reads which setting, what to mend."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from shapeguard.cli.options import report_options
from shapeguard.core.report import Report


@click.command(short_help="Look at this machine's Neuron set-up and say what to mend.")
@click.option(
    "--site-packages",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Look at the packages of this folder, such as another environment's, instead of this Python's; repeatable.",
)
@click.option(
    "--min-free",
    "least_free_gib",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="GIB",
    help="Warn where less is free for compiled files.",
)
@report_options
def command(folders: tuple[Path, ...], least_free_gib: float) -> Report:
    """Say which Neuron stack is installed, where it keeps compiled files, which settings nobody reads, what conflicts.

    Nothing is imported, run or changed. Exit 1 if something should be mended.
    """
    from shapeguard.doctor.machine import look
    from shapeguard.doctor.view import examine

    places = [str(folder) for folder in folders] or [path for path in sys.path if path]
    return examine(look(os.environ, folders=places, least_free_gib=least_free_gib))
