"""The options `--config` and `--isolated`, and the configuration they lead to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from shapeguard.cli.options import set_default_format
from shapeguard.config.nearest import Configs

__all__ = ["Configs", "config_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


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
