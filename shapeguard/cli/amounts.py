"""Numbers that options take: shares and amounts."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class Share(click.ParamType[float]):
    """`20%` or `0.2`."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give a number from 0 up to, but not including, 1."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is no share, for example 20% or 0.2", param, ctx)
        if not 0 <= share < 1:
            self.fail(f"{value!r} is not from 0% up to 100%: write 20% or 0.2", param, ctx)
        return share


class Amount(click.FloatRange):
    """A number above 0 that can be reckoned with."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give the number; `inf` and `nan` are numbers for click only."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is no amount.", param, ctx)
        return number
