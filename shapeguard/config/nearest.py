"""Which configuration counts where: the one that was named, or the nearest above each folder."""

from __future__ import annotations

from pathlib import Path

from shapeguard.config.load import Config, find, in_folder, load


class Configs:
    """The configurations of a run: the one of the working directory, and those of folders on the way."""

    def __init__(self, *, file: Path | None, is_isolated: bool) -> None:
        self._file = file
        self._is_isolated = is_isolated
        self._by_folder: dict[Path, Config] = {}
        self.here = self.at(Path())

    def at(self, folder: Path) -> Config:
        """The configuration for files of a folder: the one that was named, or the nearest upward."""
        if self._is_isolated or self._file is not None:
            return self._by_folder.setdefault(Path(), self._fixed())
        whole = folder.absolute()
        if whole not in self._by_folder:
            self._by_folder[whole] = self._nearest(whole)
        return self._by_folder[whole]

    def _fixed(self) -> Config:
        return self._by_folder.get(Path()) or load(self._file, root=Path())

    def _nearest(self, folder: Path) -> Config:
        found = in_folder(folder)
        if found is not None:
            return load(found, root=folder)
        if folder.parent in self._by_folder:
            return self._by_folder[folder.parent]
        file = find(folder.parent)
        return load(file, root=Path())
