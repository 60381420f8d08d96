"""The folder of files on their way, which several use at once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from shapeguard.cache.neff_place import INCOMING, Incoming


def test_parts_of_others_may_vanish_while_stale_ones_are_looked_for(tmp_path: Path) -> None:
    folder = tmp_path / INCOMING
    folder.mkdir()
    done = threading.Event()

    def others(name: str) -> None:
        number = 0
        while not done.is_set():
            part = folder / f"{name}{number % 50}.part"
            part.touch()
            part.unlink()
            number += 1

    threads = [threading.Thread(target=others, args=(name,)) for name in "ab"]
    for each in threads:
        each.start()
    try:
        for _ in range(500):
            Incoming(tmp_path)
    finally:
        done.set()
        for each in threads:
            each.join()


def test_only_parts_of_another_day_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / INCOMING
    folder.mkdir()
    for name, age_s in (("old.part", 2 * 86_400), ("new.part", 60)):
        (folder / name).touch()
        at = (folder / name).stat().st_mtime - age_s
        os.utime(folder / name, (at, at))
    Incoming(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["new.part"]
