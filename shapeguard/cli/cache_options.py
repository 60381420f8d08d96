"""What the verbs of `shapeguard cache` share: the cache's folder, and the options that pick records."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shapeguard.cli.configured import Configs, config_options

if TYPE_CHECKING:
    from shapeguard.cache.select import Wanted
    from shapeguard.cache.store import GraphCache
    from shapeguard.core.graphs import GraphRecord

Command = TypeVar("Command", bound=Callable[..., Any])
DEVICES = {"sim": "simulated", "neuron": "real"}
KINDS = ("forward", "backward", "inference", "eager", "collective")
TARGETS = ("trn2", "trn3")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class Size(click.ParamType["int"]):
    """A number of bytes with a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read `100M`, `1.5 GB`, `1GiB`."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", str(value).strip().lower())
        if match is None or match[2] not in _UNITS:
            self.fail(f"{value!r} is no size, for example 100M or 2GiB", param, ctx)
        return int(float(match[1]) * _UNITS[match[2]])


class Age(click.ParamType["int"]):
    """A span of time, in seconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read `30d`, `12h`, `4w`."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d{1,6})\s*([smhdw])", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is no age, for example 30d or 12h", param, ctx)
        return int(match[1]) * _SPANS[match[2]]


class Word(click.ParamType["str"]):
    """One of a few words."""

    name = "word"

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give the word; another is an error that says which was meant."""
        if value not in self._words:
            from difflib import get_close_matches

            close = get_close_matches(str(value), self._words, n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            self.fail(f"{value!r} is not one of {', '.join(self._words)}.{meant}", param, ctx)
        return str(value)


def cache_options(command: Command) -> Command:
    """Hand a verb the `folder` of the cache: as given, as configured, or the default."""

    @wraps(command)
    def call(*args: Any, configs: Configs, cache_dir: Path | None, **kwargs: Any) -> Any:
        report = command(*args, folder=cache_folder(configs, cache_dir), **kwargs)
        return replace(report, is_listing=True)

    decorated: Any = click.option(
        "--cache-dir",
        type=click.Path(path_type=Path),
        help="Folder of the graph cache. [default: SHAPEGUARD_CACHE_DIR, the setting cache-dir, "
        "$XDG_CACHE_HOME/shapeguard]",
    )(call)
    return config_options(decorated)  # type: ignore[no-any-return]


def cache_folder(configs: Configs, given: Path | None) -> Path:
    """Give the folder of the cache: as given, as configured, or the default."""
    from shapeguard.cache.location import default_folder

    if given is not None:
        return given
    here = configs.here
    setting = here.settings.cache_dir
    if setting and here.origins.get("cache-dir") != "SHAPEGUARD_CACHE_DIR":
        # A file's relative path counts from the file.
        return here.root / Path(setting).expanduser()
    return default_folder(os.environ, setting)


def record_options(command: Command) -> Command:
    """Give a verb the options that pick records, and hand it `wanted`; the model and shapes are its own arguments."""

    @wraps(command)
    def call(*args: Any, device: str | None, model: str = "", shape: str = "", **kwargs: Any) -> Any:
        from shapeguard.cache.select import Wanted, dtype, shapes

        asked = {name: kwargs.pop(name) for name in ("batch", "length", "tp", "target", "kind")}
        return command(
            *args,
            wanted=Wanted(
                model=model,
                shapes=shapes(shape) if shape else (),
                dtype=dtype(kwargs.pop("dtype") or ""),
                device=DEVICES[device] if device else "",
                **{name: value for name, value in asked.items() if value is not None},
            ),
            **kwargs,
        )

    for option in (
        click.option("--kind", type=Word(KINDS), help="forward, backward, inference; eager, collective."),
        click.option("--device", type=click.Choice(list(DEVICES)), help="Simulated or real records."),
        click.option("--target", type=Word(TARGETS), help="Platform: trn2, trn3."),
        click.option("--tp", type=click.IntRange(min=0), help="Size of tensor parallelism."),
        click.option("--dtype", help="Of an input, or of autocast: int64, bf16."),
        click.option("--length", type=click.IntRange(min=0), help="Second size of an input."),
        click.option("--batch", type=click.IntRange(min=0), help="First size of an input."),
    ):
        call = option(call)
    return call  # type: ignore[return-value]


def picked(cache: GraphCache, wanted: Wanted, *, eager: bool) -> list[GraphRecord]:
    """Give the records that a user asked for."""
    from shapeguard.cache.select import model_prefix, select

    return select(cache.records(model_prefix(wanted.model), eager=eager), wanted)


def share_options(command: Command) -> Command:
    """Give a verb that shares records the options that say which, and whether in earnest."""
    decorated: Any = command
    for option in (
        click.option("--dry-run", is_flag=True, help="Only say what would be moved."),
        click.option(
            "--neff-dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="Move compiled files too: the folder that the Neuron stack reads.",
        ),
        click.option("--model", default="", help="Only this model: a name, NAME@CONFIGURATION, or a pattern."),
        click.option(
            "--lock",
            "lock_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Only the graphs that this lock names.",
        ),
    ):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def demand_folder(neff_dir: Path | None) -> None:
    """Raise a `UsageError` where the folder to take compiled files from is not there."""
    from shapeguard.core.errors import UsageError

    if neff_dir is not None and not neff_dir.is_dir():
        raise UsageError(f"{str(neff_dir)!r} is no folder", hint="give --neff-dir the folder of compiled files")


def progress(word: str) -> Callable[[int, int], None]:
    """Give what shows how far a transfer is, where a person looks on."""
    is_shown = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if is_shown:
            click.echo(f"\r[{done}/{total}] {word}" + ("\n" if done == total else ""), nl=False, err=True)

    return show
