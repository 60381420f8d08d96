"""Charts as SVG, drawn here and not by the reader: no script, no link, colours of the page they stand in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_NOISE = re.compile(r"<!--.*?-->|<script.*?</script>", re.DOTALL)
_WIDTH = 900
_MOST_LABELS = 12


def bars(name: str, labels: Sequence[str], values: Sequence[int], *, height: int = 200, color: str = "--one") -> str:
    """Draw a bar for each label; `name` tells the chart's style from those of other charts on the page."""
    import pygal

    chart: Any = pygal.Bar(
        style=_style(color),
        js=[],
        width=_WIDTH,
        height=height,
        margin=8,
        spacing=4,
        show_legend=False,
        disable_xml_declaration=True,
        show_minor_x_labels=False,
        truncate_label=24,
        min_scale=1,
        max_scale=5,
        value_formatter=lambda value: f"{value:,.0f}",
        # Half a compile is none.
        order_min=0,
    )
    chart.uuid = name
    chart.x_labels = list(labels)
    every = max(1, -(-len(labels) // _MOST_LABELS))
    chart.x_labels_major = list(labels)[::every]
    chart.add("", [{"value": value, "label": label} for label, value in zip(labels, values, strict=True)])
    return _NOISE.sub("", str(chart.render(is_unicode=True))).replace(' xmlns="http://www.w3.org/2000/svg"', "")


def _style(color: str) -> Any:
    from pygal.style import Style

    return Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--line)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        colors=(f"var({color})",),
        font_family="inherit",
        label_font_size=13,
        major_label_font_size=13,
        opacity="1",
        opacity_hover=".7",
        transition="0s",
    )
