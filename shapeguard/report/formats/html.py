"""One page to open in a browser: no script, nothing from outside, readable on a phone and in the dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shapeguard.core.finding import Finding
from shapeguard.core.report import Report, Table, Text
from shapeguard.report.charts import bars
from shapeguard.report.page import page, pairs, table, text
from shapeguard.report.reporter import Reporter, Style

MOST_GRAPHS = 400
MOST_INPUTS = 24
MOST_CHARTS = 6
MOST_BARS = 40
MAX_BYTES = 1_900_000

WORDS = (
    "A graph is what Neuron compiles as one unit; it fits one set of input shapes only. A region is a piece of the "
    "program that is handed over at once, and may need several graphs; a region takes minutes to compile, an eager "
    "operator seconds. The first steps compile by nature (warm-up); what compiles later stops the program again."
)


class Html(Reporter):
    """A page for people who were not there."""

    name = "html"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give the page; rows that would make it too large are counted and left out."""
        most = MOST_GRAPHS
        while True:
            found = page(f"shapeguard {report.tool}", _parts(report, most))
            if len(found.encode()) < MAX_BYTES or not most:
                return found
            most //= 2


def _parts(report: Report, most: int) -> Iterator[str]:
    document: Mapping[str, Any] = report.page
    is_run = isinstance(document.get("timeline"), Mapping)
    yield from (_text(part) for part in report.sections if isinstance(part, Text) and (part.strong or not is_run))
    if is_run:
        yield f'<p class="dim">{text(WORDS)}</p>'
        yield from (
            _text(part)
            for part in report.sections
            if isinstance(part, Text) and not part.strong and not _is_causes(part)
        )
        yield from _run(document, most)
    shown = report.sections if not is_run else ()
    yield from (table(part) for part in shown if isinstance(part, Table))
    yield from _findings(report)
    if report.problems:
        items = "".join(f"<li><code>{text(row.path)}</code> {text(row.message)}</li>" for row in report.problems)
        yield f"<h2>Problems</h2><ul>{items}</ul>"
    yield from (f'<p class="dim">{text(line)}</p>' for line in report.summary)


def _is_causes(part: Text) -> bool:
    return part.text.startswith("Causes\n")


def _text(part: Text) -> str:
    if part.is_verbatim or "\n" in part.text:
        return f"<pre>{text(part.text)}</pre>" if not part.is_verbatim else f"<pre>{_lines(part.text)}</pre>"
    return f'<p class="verdict">{text(part.text)}</p>' if part.strong else f"<p>{text(part.text)}</p>"


def _lines(block: str) -> str:
    return "\n".join(map(text, block.splitlines()))


def _findings(report: Report) -> Iterator[str]:
    shown = [finding for finding in report.findings if finding.suppressed is None]
    if shown:
        rows = tuple((_where(row), row.code, row.message) for row in shown)
        yield table(Table(title="Findings", columns=("where", "code", "what"), rows=rows))


def _where(row: Finding) -> str:
    return f"{row.path}{f', cell {row.cell}' if row.cell is not None else ''}:{row.span.line}"


def _run(document: Mapping[str, Any], most: int) -> Iterator[str]:
    yield _causes(document.get("causes") or ())
    yield from _timeline(document["timeline"])
    yield from _batches(document.get("batch_shapes") or {})
    yield from _shapes(document.get("graphs") or ())
    yield from _graphs(document.get("graphs") or (), most)
    if operators := document.get("eager_ops") or ():
        rows = tuple((row["op"], f"{row['signatures']:,}", _site(row)) for row in operators)
        yield table(Table(title="Eager operators", columns=("operator", "signatures", "line"), rows=rows,
                          right=frozenset({1})))  # fmt: skip


def _causes(causes: Sequence[Mapping[str, Any]]) -> str:
    if not causes:
        return "<h2>Causes</h2><p>nothing compiled again</p>"
    return f"<h2>Causes</h2><ol>{''.join(map(_cause, causes))}</ol>"


def _cause(row: Mapping[str, Any]) -> str:
    codes = f" [{', '.join(row['rules'])}]" if row.get("rules") else ""
    where = f'<b class="code">{text(_site(row))}</b> ' if row.get("site") else ""
    return (
        f"<li>{where}{text(row.get('cost', ''))}<br>{text(row.get('what', ''))}<br>"
        f"→ {text(row.get('advice', ''))}{text(codes)}</li>"
    )


def _timeline(found: Mapping[str, Any]) -> Iterator[str]:
    rows = found.get("rows") or ()
    if not rows:
        return
    width = int(found.get("steps_each") or 1)
    labels = [str(row[0]) if width == 1 else f"{row[0]}-{row[0] + width - 1}" for row in rows]
    yield "<h2>When it compiled</h2>"
    for name, column, title, color in (
        ("regions", 1, "Regions by step", "--one"),
        ("eager", 2, "Eager signatures by step", "--two"),
    ):
        values = [row[column] for row in rows]
        if any(values):
            yield f'<h3>{title}</h3><div class="figure">{bars(f"time-{name}", labels, values, color=color)}</div>'


def _batches(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    if found:
        yield "<h2>Shapes of the batches</h2><p class='dim'>How many batches of the loaders came in which shape.</p>"
    for number, (name, rows) in enumerate(list(found.items())[:MOST_CHARTS]):
        ordered = sorted(rows, key=lambda row: list(row["shape"]))
        yield _histogram(f"batch-{number}", name, [(_size(row["shape"]), row["batches"]) for row in ordered], "--two")


def _histogram(chart: str, name: str, rows: Sequence[tuple[str, int]], color: str) -> str:
    if len(rows) == 1:
        return f"<p><code>{text(name)}</code> always {text(rows[0][0])}</p>"
    kept = rows[:MOST_BARS]
    left = f", the first {MOST_BARS} of {len(rows)}" if len(rows) > MOST_BARS else ""
    drawn = bars(chart, [shape for shape, _ in kept], [count for _, count in kept], height=180, color=color)
    return f'<h3><code>{text(name)}</code>{left}</h3><div class="figure">{drawn}</div>'


def _size(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "()"


def _shapes(graphs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found: dict[str, dict[str, int]] = {}
    for graph in graphs:
        if graph["kind"] != "backward":
            for row in graph.get("shown") or ():
                shape = "×".join(map(str, row["shape"])) or "()"
                seen = found.setdefault(row["path"], {})
                seen[shape] = seen.get(shape, 0) + 1
    varying = sorted((item for item in found.items() if len(item[1]) > 1), key=lambda item: -len(item[1]))
    if varying:
        yield "<h2>Shapes of each input</h2><p class='dim'>How many graphs take the input in which shape.</p>"
    for number, (path, shapes) in enumerate(varying[:MOST_CHARTS]):
        yield _histogram(f"shape-{number}", path, list(shapes.items()), "--one")
    if len(varying) > MOST_CHARTS:
        yield f'<p class="dim">{len(varying) - MOST_CHARTS} more inputs have several shapes.</p>'


def _graphs(graphs: Sequence[Mapping[str, Any]], most: int) -> Iterator[str]:
    if graphs:
        yield f"<h2>Graphs</h2><p class='dim'>{len(graphs):,} graphs; open one for its inputs and operators.</p>"
    yield from map(_graph, graphs[:most])
    if len(graphs) > most:
        yield f'<p class="dim">{len(graphs) - most:,} more graphs: shapeguard report RUN --by graph</p>'


def _graph(row: Mapping[str, Any]) -> str:
    inputs = row.get("inputs") or ()
    shown = tuple((each["path"], "×".join(map(str, each["shape"])) or "()", each["dtype"], each.get("layout", ""))
                  for each in inputs[:MOST_INPUTS])  # fmt: skip
    left = f"{len(inputs) - MOST_INPUTS} more inputs" if len(inputs) > MOST_INPUTS else ""
    facts = pairs(
        (
            ("line", _site(row)),
            ("model", row.get("model", "")),
            ("differs from its nearest neighbour by", row.get("change") or "it is the first of its kind"),
            ("nodes", row.get("nodes", 0)),
            ("asked for", f"{row.get('count', 0)} times"),
            ("compile time", row.get("cost") or "unknown"),
            ("operators", _operators(row)),
            ("key", str(row.get("key", ""))[:16]),
        )
    )
    rows = Table(columns=("input", "shape", "dtype", "layout"), rows=shown, note=left)
    title = f"{row['kind']} {row.get('model', '')} at step {row.get('first_step', 0)}"
    change = f' <span class="dim">{text(row["change"])}</span>' if row.get("change") else ""
    return f"<details><summary>{text(title)}{change}</summary>{facts}{table(rows)}</details>"


def _operators(row: Mapping[str, Any]) -> str:
    found = row.get("operators") or {}
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0])) if isinstance(found, Mapping) else []
    return ", ".join(f"{op} {count}" for op, count in ordered[:30])


def _site(row: Mapping[str, Any]) -> str:
    site = row.get("site")
    return f"{site['file']}:{site['line']}" if site else ""
