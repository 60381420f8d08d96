"""The cache folder of the torch_xla stack: `neuronxcc-VERSION/MODULE_…/`, oldest first."""

from __future__ import annotations

from pathlib import Path

from shapeguard.core.events import Outcome
from shapeguard.core.neffs import State, is_compiler_folder, xla_name, xla_state
from shapeguard.importers.importer import Imported, Importer, Numbering
from shapeguard.importers.modules import module


class XlaCache(Importer):
    """A folder such as `/var/tmp/neuron-compile-cache`; one process for each compiler that filled it."""

    name = "xla-cache"
    what = "a cache folder of the torch_xla stack"

    def fits(self, path: Path) -> bool:
        """Tell it by the folders of compilers in it."""
        return path.is_dir() and any(is_compiler_folder(each.name) for each in path.iterdir())

    def read(self, path: Path, *, root: str) -> list[Imported]:
        """Read each compiler's folder."""
        folders = sorted(each for each in path.iterdir() if each.is_dir() and is_compiler_folder(each.name))
        return [_read(path, folder) for folder in folders]


def _read(root: Path, folder: Path) -> Imported:
    numbering = Numbering()
    unfinished = 0
    modules = [each for each in folder.iterdir() if each.is_dir() and not each.is_symlink()]
    number = 0
    for each in sorted(modules, key=lambda found: (found.stat().st_mtime, found.name)):
        if xla_name(each.relative_to(root).as_posix()) is None:
            continue
        state = xla_state({file.name: file.lstat().st_size for file in each.iterdir()})
        if state is State.UNFINISHED:
            unfinished += 1
            continue
        number += 1
        module(numbering, number, each.name, Outcome.FAILED if state is State.FAILED else Outcome.COMPILED)
    version = folder.name.removeprefix("neuronxcc-")
    return Imported(device={"toolchain": {"neuronx-cc": version}}, events=numbering.events, num_unread=unfinished)
