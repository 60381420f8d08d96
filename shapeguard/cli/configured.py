"""The options `--config` and `--isolated`, and the configuration they lead to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from shapeguard.cli.options import set_default_format
from shapeguard.config.load import Config, find, in_folder, load

Command = TypeVar("Command", bound=Callable[..., Any])


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


def config_options(command: Command) -> Command:
    """Give a command `--config` and `--isolated`, and hand it `configs`."""

    @wraps(command)
    def call(*args: Any, config: Path | None, isolated: bool, **kwargs: Any) -> Any:
        if config is not None and isolated:
            raise click.UsageError("--config cannot stand beside --isolated.")
        configs = Configs(file=config, is_isolated=isolated)
        if configs.here.settings.output_format:
            set_default_format(configs.here.settings.output_format)
        return command(*args, configs=configs, **kwargs)

    decorated: Any = click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Read this TOML file instead of looking for one. [default: the nearest shapeguard.toml or "
        "pyproject.toml with [tool.shapeguard], upward from each file]",
    )(call)
    return click.option("--isolated", is_flag=True, help="Read no configuration file.")(decorated)  # type: ignore[no-any-return]
