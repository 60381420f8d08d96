"""After a run: its graphs go into the graph cache, whatever becomes of that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shapeguard.cache.fill import fill
from shapeguard.cache.location import default_folder
from shapeguard.core.errors import ShapeguardError
from shapeguard.runs.records import records
from shapeguard.runs.stream import read_run

_OFF = ("", "0", "false", "no", "off")


def remember(run: Path, environment: Mapping[str, str], *, cache_dir: str = "", job: str = "") -> str:
    """Keep the graphs of a finished run; gives a line to say where that failed, else an empty text. Never raises.

    Nothing is kept where `SHAPEGUARD_NO_CACHE` is set; `cache_dir` is the configured folder.
    """
    if environment.get("SHAPEGUARD_NO_CACHE", "").lower() not in _OFF:
        return ""
    try:
        return fill(records(read_run(run), job=job), default_folder(environment, cache_dir))
    except (ShapeguardError, OSError, RuntimeError) as error:
        # RuntimeError: there is no home folder to find the cache in.
        return f"note: the graph cache was not filled: {error}"
