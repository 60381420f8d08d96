"""A plan as a report: what to compile, what it pads, what other numbers of buckets would do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from shapeguard.buckets.choose import Choice, Wanted
from shapeguard.buckets.emit import Definition
from shapeguard.buckets.fit import ANY_LENGTH, Fit, Limits
from shapeguard.buckets.lengths import Lengths
from shapeguard.buckets.plan import MAX_BUCKETS
from shapeguard.core.errors import Exit
from shapeguard.core.finding import Problem
from shapeguard.core.report import JSON, Report, Table, Text

SCHEMA = 1
_LISTED = 16
"""Buckets that the headline names; the table has them all."""
_BAR = 30
"""Columns of the bar that stands for 100 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """All that a report tells of a plan."""

    lengths: Lengths
    choice: Choice
    wanted: Wanted
    definition: Definition
    has_work: bool
    """Attention's share counts, so that wasted work is not the share of padding."""
    limits: Limits = ANY_LENGTH
    max_graphs: int | None = None
    """The limits as the user gave them; a plan keeps them by itself, given buckets may not."""
    given: Fit | None = None
    """What buckets that the user brought do; then those are judged and the choice is the alternative."""

    @property
    def shown(self) -> Fit:
        """The buckets that the report is about."""
        return self.given or self.choice.fit


def report(planned: Planned) -> Report:
    """Give the report; exit 1 where a cap is not kept, or given buckets do not hold every row."""
    fit = planned.shown
    failures = _failures(planned)
    sections: list[Table | Text] = [Text(text=_headline(planned), strong=True), _buckets(planned)]
    sections.append(_before_and_after(planned))
    sections.append(_curve(planned))
    return Report(
        tool="plan",
        sections=tuple(sections),
        problems=tuple(Problem(path=planned.lengths.source, message=text) for text in failures),
        document=document(planned),
        is_listing=True,
        totals={"buckets": len(fit.buckets), "rows": sum(fit.rows), "padded": fit.padded},
        summary=_summary(planned),
        notes=planned.lengths.notes,
        exit_code=Exit.FINDINGS if failures else Exit.CLEAN,
    )


def document(planned: Planned) -> Mapping[str, JSON]:
    """What programs read."""
    fit = planned.shown
    tokens = planned.lengths.tokens
    return {
        "schema": SCHEMA,
        "source": planned.lengths.source,
        "for": planned.definition.use,
        "align": planned.definition.align,
        **_plain(fit, planned),
        "rows": list(fit.rows),
        "batch_sizes": [planned.definition.batch_of(bucket) for bucket in fit.buckets],
        "tokens": fit.tokens,
        "real_tokens": fit.real_tokens,
        "unused": list(fit.unused),
        "misfits": {str(length): rows for length, rows in sorted(fit.misfits.items())},
        "before": None if tokens is None else {"real_tokens": tokens[0], "padded": tokens[1]},
        "best": None if planned.given is None else _plain(planned.choice.fit, planned),
        "curve": [_plain(each, planned) for each in planned.choice.curve],
    }


def _plain(fit: Fit, planned: Planned) -> dict[str, JSON]:
    row: dict[str, JSON] = {
        "buckets": list(fit.buckets),
        "graphs": len(fit.buckets) * planned.wanted.graphs_each,
        "padded": fit.padded,
        "padding_share": round(fit.padding_share, 6),
        "waste": round(fit.waste, 6),
    }
    price = planned.wanted.price
    if price is not None:
        row["hours"] = _finite(planned.wanted.cost(fit), 4)
        if price.per_hour is not None:
            row["cost"] = _finite(planned.wanted.cost(fit) * price.per_hour, 2)
    return row


def _finite(number: float, digits: int) -> float | None:
    """Give a number that JSON can write; None where it is larger than any."""
    return round(number, digits) if isfinite(number) else None


def _headline(planned: Planned) -> str:
    fit = planned.shown
    graphs = len(fit.buckets) * planned.wanted.graphs_each
    return (
        f"{_counted(len(fit.buckets), 'bucket')} for {_counted(sum(fit.rows), 'row')}: "
        f"{_listed(fit.buckets)} ({_counted(graphs, 'graph')})"
    )


def _listed(buckets: Sequence[int]) -> str:
    words = [str(bucket) for bucket in buckets]
    if len(words) > _LISTED:
        words[_LISTED - 2 : -1] = ["…"]
    return ", ".join(words)


def _buckets(planned: Planned) -> Table:
    fit = planned.shown
    total = sum(fit.rows) or 1
    has_batch = any(planned.definition.batch_of(bucket) for bucket in fit.buckets)
    rows = []
    for bucket, count in zip(fit.buckets, fit.rows, strict=True):
        cells = [f"{bucket:,}", f"{count:,}", f"{count / total:.1%}", f"{bucket * count:,}"]
        rows.append((*cells, str(planned.definition.batch_of(bucket))) if has_batch else tuple(cells))
    columns = ("bucket", "rows", "share", "tokens with padding")
    return Table(
        columns=(*columns, "rows of a batch") if has_batch else columns, rows=tuple(rows), right=frozenset(range(5))
    )


def _before_and_after(planned: Planned) -> Table:
    fit, best = planned.shown, planned.choice.fit
    rows = []
    tokens = planned.lengths.tokens
    if tokens is not None:
        rows.append(_share("the run, as it padded", _shapes(planned.lengths), tokens[1], sum(tokens)))
    one = max(fit.buckets[-1], best.buckets[-1])
    rows.append(_share(f"everything to {one:,}", "1", one * sum(fit.rows) - fit.real_tokens, one * sum(fit.rows)))
    if planned.given is not None:
        rows.append(_share("these buckets", str(len(fit.buckets)), fit.padded, fit.tokens))
        rows.append(_share("the best of that number", str(len(best.buckets)), best.padded, best.tokens))
    else:
        rows.append(_share("this plan", str(len(fit.buckets)), fit.padded, fit.tokens))
    return Table(
        title="Padding",
        columns=("", "lengths", "padding tokens", "share"),
        rows=tuple(rows),
        right=frozenset({1, 2, 3}),
    )


def _shapes(lengths: Lengths) -> str:
    return str(len({length for _, length in lengths.shapes})) if lengths.shapes else ""


def _share(name: str, number: str, padded: int, tokens: int) -> tuple[str, ...]:
    return name, number, f"{padded:,}", f"{padded / tokens:.1%}" if tokens else "-"


def _curve(planned: Planned) -> Table:
    """The table that is a plot as well: a bar for the share of padding."""
    price = planned.wanted.price
    columns = ["", "buckets", "graphs", "padding"]
    columns += ["wasted work"] if planned.has_work else []
    columns += ["compile h", "run h"] if price else []
    columns += ["cost"] if price and price.per_hour is not None else []
    rows = []
    for fit in _telling(planned):
        mark = ">" if fit.buckets == planned.choice.fit.buckets else ""
        graphs = len(fit.buckets) * planned.wanted.graphs_each
        cells = [mark, str(len(fit.buckets)), str(graphs), f"{fit.padding_share:.1%}"]
        cells += [f"{fit.waste:.1%}"] if planned.has_work else []
        if price:
            cells += [f"{price.compile_hours(graphs):,.1f}", f"{price.run_hours(fit):,.1f}"]
            cells += [f"{planned.wanted.cost(fit) * price.per_hour:,.2f}"] if price.per_hour is not None else []
        rows.append((*cells, "█" * round(fit.padding_share * _BAR)))
    return Table(
        title="With other numbers of buckets",
        columns=(*columns, ""),
        rows=tuple(rows),
        right=frozenset(range(1, len(columns))),
    )


def _telling(planned: Planned) -> Sequence[Fit]:
    """The points of a long curve that people want to see: its begin, the doublings, and what is near the choice."""
    chosen = len(planned.choice.fit.buckets)
    return [
        fit
        for fit in planned.choice.curve
        if (number := len(fit.buckets)) <= _LISTED or number & (number - 1) == 0 or abs(number - chosen) <= 2
    ]


def _failures(planned: Planned) -> Sequence[str]:
    fit = planned.shown
    found = []
    if planned.given is not None:
        if fit.misfits:
            found.append(_misfits(fit))
        cap = planned.wanted.max_waste
        if cap is not None and fit.waste > cap:
            found.append(f"these buckets waste {fit.waste:.1%}, more than {cap:.1%}")
        found += _beyond(planned, fit)
    elif planned.choice.failure:
        found.append(planned.choice.failure)
    return found


def _beyond(planned: Planned, fit: Fit) -> Iterator[str]:
    """Say which of the other limits given buckets do not keep."""
    limits, graphs = planned.limits, len(fit.buckets) * planned.wanted.graphs_each
    if planned.max_graphs is not None and graphs > planned.max_graphs:
        yield f"these buckets make {_counted(graphs, 'graph')}, more than {planned.max_graphs:,}"
    longer = [bucket for bucket in fit.buckets if limits.max_length is not None and bucket > limits.max_length]
    if longer:
        verb = "is" if len(longer) == 1 else "are"
        yield f"{_listed(longer)} {verb} longer than the maximum length {limits.max_length:,}"
    if limits.max_pad is None:
        return
    padding = {length: _padding(length, fit.buckets) for length in planned.lengths.counts if length <= fit.buckets[-1]}
    over = {length: pad for length, pad in padding.items() if pad > limits.max_pad}
    if over:
        worst = max(over, key=lambda length: over[length])
        rows = sum(planned.lengths.counts[length] for length in over)
        yield (
            f"{_counted(rows, 'row')} get{'s' if rows == 1 else ''} more than {limits.max_pad:,} tokens of padding: "
            f"one of {worst:,} gets {over[worst]:,}"
        )


def _padding(length: int, buckets: Sequence[int]) -> int:
    return buckets[bisect_left(buckets, length)] - length


def _misfits(fit: Fit) -> str:
    rows = sum(fit.misfits.values())
    return (
        f"{_counted(rows, 'row')} fit{'s' if rows == 1 else ''} no bucket: "
        f"the longest has {max(fit.misfits):,} tokens, the largest bucket {fit.buckets[-1]:,}"
    )


def _summary(planned: Planned) -> tuple[str, ...]:
    fit = planned.shown
    lines = []
    if fit.unused:
        lines.append(f"never used: {', '.join(map(str, fit.unused))}")
    if fit.misfits and planned.given is None:
        lines.append(f"{_misfits(fit)} (left out; --truncate cuts them)")
    if planned.given is None and fit.buckets[-1] % planned.definition.align:
        lines.append(f"{fit.buckets[-1]:,} is the maximum length and no multiple of {planned.definition.align}")
    if planned.given is None and len(fit.buckets) == MAX_BUCKETS:
        lines.append(f"a plan has {MAX_BUCKETS} buckets at most")
    if planned.given is None and len(planned.choice.curve) == 1 and planned.definition.align > 1:
        lines.append(f"every row fits one multiple of {planned.definition.align}: a lower --align pads less")
    if planned.given is None:
        lines.append("--write toml=buckets.toml keeps the plan; --emit collator, prompts, vllm or jobs prints its use.")
    return tuple(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
