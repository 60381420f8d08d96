"""Whether the folders of compiled files are safe, shared rightly, and writable."""

from __future__ import annotations

from collections.abc import Iterable

from shapeguard.doctor.check import Check, Notice
from shapeguard.doctor.machine import Folder, Machine
from shapeguard.doctor.places import folders

_OTHERS_WRITE = 0o002


class Folders(Check):
    """Folders that anybody may write to, on the network, of another user, not writable."""

    name = "folders"

    def look(self, machine: Machine) -> Iterable[Notice]:
        """Look at each folder that a stack here reads."""
        for folder in folders(machine):
            yield from self._look(folder, machine)

    def _look(self, folder: Folder, machine: Machine) -> Iterable[Notice]:
        if not folder.path.is_absolute():
            yield Notice(
                subject=str(folder.path),
                message=f"{folder.origin} is a relative path: {folder.layer} finds another in each working folder",
                hint="give an absolute path",
            )
        if folder.exists and folder.mode & _OTHERS_WRITE:
            yield Notice(
                subject=str(folder.path),
                message=f"anybody may write to {folder.path}, from which {folder.layer} loads programs and runs them",
                hint=f"chmod o-w {folder.path}",
            )
        if folder.exists and folder.owner not in (machine.user, 0):
            yield Notice(
                subject=str(folder.path),
                message=f"{folder.path} belongs to another user (uid {folder.owner}), who decides what is run",
                hint="give each user a folder of their own",
            )
        if folder.is_network:
            yield Notice(
                subject=str(folder.path),
                message=f"{folder.path} lies on the network ({folder.filesystem}): locks of {folder.layer} may not "
                "hold between machines, and two of them compile the same graph",
                hint="use a local folder, and share it with `shapeguard cache push` and `pull`",
            )
        if not folder.is_writable:
            yield Notice(
                subject=str(folder.path),
                message=f"{folder.path} cannot be written to: {folder.layer} compiles everything again in each process",
                hint="give the user of the job write access, or another folder",
            )
