"""Whether there is room for compiled files."""

from __future__ import annotations

from collections.abc import Iterable

from shapeguard.doctor.check import Check, Notice
from shapeguard.doctor.machine import Machine
from shapeguard.doctor.places import folders


class Disks(Check):
    """Full disks below the folders of compiled files."""

    name = "disks"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Compare what is free with what is wanted."""
        seen: set[tuple[int | None, int | None]] = set()
        for folder in folders(machine):
            space = (folder.free_bytes, folder.size_bytes)
            if folder.free_bytes is None or space in seen:
                continue
            seen.add(space)
            if folder.free_bytes < machine.least_free_bytes:
                yield Notice(
                    subject=str(folder.path),
                    message=f"{folder.free_bytes / 2**30:.1f} GiB are free for {folder.path}; a large model's NEFFs "
                    f"take more, wanted are {machine.least_free_bytes / 2**30:g} GiB",
                    hint="free some, `shapeguard cache status` shows what can go, or name another folder",
                )
