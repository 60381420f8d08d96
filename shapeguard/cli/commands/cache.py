"""`shapeguard cache`: the graphs that were ever needed, by model and shape. One verb a file in `cli/cache`."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click

from shapeguard.cli import cache
from shapeguard.core.plugins import names


def _verbs() -> dict[str, str]:
    """Verb to module; a verb that is a word of Python's has a file that ends with an underscore."""
    return {name.rstrip("_").replace("_", "-"): name for name in names(cache)}


class Verbs(click.Group):
    """One verb a file of `cli/cache`; a file is imported when its verb is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the files of the folder."""
        return sorted(_verbs())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's file."""
        module = _verbs().get(name)
        if module is None:
            return None
        verb = import_module(f"{cache.__name__}.{module}").command
        assert isinstance(verb, click.Command)
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say what was meant where a verb does not exist."""
        if args and args[0] not in _verbs() and not args[0].startswith("-"):
            close = get_close_matches(args[0], _verbs(), n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such verb {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, short_help="Look into, share and clean the graph cache.")
def command() -> None:
    """Say which graphs were ever needed, what each cost, why one is new; share them, and clean up.

    The cache holds what is known of compiled graphs. Counts of a trace never depend on it.
    """
