"""After a run: its graphs go into the graph cache, whatever becomes of that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shapeguard.cache.fill import fill
from shapeguard.cache.location import default_folder
from shapeguard.cache.store import GraphCache
from shapeguard.core.errors import ShapeguardError
from shapeguard.core.graphs import GraphRecord
from shapeguard.runs.records import records
from shapeguard.runs.stream import read_run

_OFF = ("", "0", "false", "no", "off")


def recorded(environment: Mapping[str, str], *, cache_dir: str = "") -> tuple[GraphRecord, ...]:
    """Give the graphs of the cache whose compile was measured; none where there is no cache. Never raises."""
    if environment.get("SHAPEGUARD_NO_CACHE", "").lower() not in _OFF:
        return ()
    try:
        folder = default_folder(environment, cache_dir)
        if not folder.is_dir():
            return ()
        with GraphCache(folder, for_reading=True) as cache:
            return tuple(record for record in cache.records() if record.compile_s is not None)
    except (ShapeguardError, OSError, RuntimeError):
        return ()


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
