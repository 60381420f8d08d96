"""Where lint meets trace: the finding that explains a cause, and what a finding cost in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shapeguard.core.finding import Finding
from shapeguard.lint.engine import LintOptions, lint_paths
from shapeguard.lint.scope import Scope
from shapeguard.runs.causes import Cause
from shapeguard.runs.summary import Summary
from shapeguard.runs.values import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run compiled because of one finding."""

    regions: int = 0
    late: int = 0
    """Of these, after warm-up."""
    eager: int = 0

    def __str__(self) -> str:
        """Say it in a few words."""
        regions = f"{self.regions} more region{'s' * (self.regions != 1)}, {self.late} after warm-up"
        eager = f"{self.eager} more eager signature{'s' * (self.eager != 1)}"
        return ", ".join([regions] * bool(self.regions) + [eager] * bool(self.eager)) or "compiled nothing more"


def findings_of(summary: Summary, root: Path) -> tuple[Finding, ...]:
    """Lint the user's files that a run names, where they still lie below the folder; a file is only read."""
    names = {cause.site.file for cause in summary.causes if cause.site}
    files = [root / name for name in sorted(names) if not name.startswith(("/", "..")) and (root / name).is_file()]
    if not files:
        return ()
    scope = Scope(root=root)
    return lint_paths(files, scope_for=lambda _: scope, options=LintOptions()).findings


def explains(cause: Cause, findings: Iterable[Finding]) -> Finding | None:
    """Give the finding behind a cause: a rule that finds such code, in its file, nearest to its line."""
    site = cause.site
    if site is None:
        return None
    near = [row for row in findings if is_in(row, site) and row.code in cause.rules and row.suppressed is None]
    return min(near, key=lambda row: abs(row.span.line - site.line), default=None)


def is_in(finding: Finding, site: Site) -> bool:
    """Whether a finding stands in the file of a site; a run keeps only the end of a path outside of its folder."""
    path = Path(finding.path).as_posix()
    return path == site.file or path.endswith(f"/{site.file}")


def named(causes: Sequence[Cause], findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """Give the causes with the line of the finding behind each."""
    return tuple(replace(cause, found=_found(cause, findings)) for cause in causes)


def _found(cause: Cause, findings: Sequence[Finding]) -> str:
    row = explains(cause, findings)
    if row is None or cause.site is None:
        return ""
    return f"{row.code}, {cause.site.file}:{row.span.line}"


def ranked(findings: Sequence[Finding], summary: Summary) -> tuple[Finding, ...]:
    """Give findings with what each cost in the run, the dearest first; files that the run never met come last."""
    spent: dict[int, Spent] = {}
    for cause in summary.causes:
        row = explains(cause, findings)
        if row is not None:
            old = spent.get(id(row), Spent())
            spent[id(row)] = Spent(
                regions=old.regions + cause.count, late=old.late + cause.late, eager=old.eager + cause.eager
            )
    met = _met(summary)
    told = [(_order(spent.get(id(row))), _told(row, spent.get(id(row)), met)) for row in findings]
    return tuple(row for _, row in sorted(told, key=lambda item: item[0]))


def _order(spent: Spent | None) -> tuple[int, int, int]:
    return (-spent.regions, -spent.late, -spent.eager) if spent else (1, 0, 0)


def _told(row: Finding, spent: Spent | None, met: frozenset[str]) -> Finding:
    if spent is not None:
        return replace(row, message=f"{row.message} ({spent} in this run)")
    file = Path(row.path).as_posix()
    if not any(file == name or file.endswith(f"/{name}") for name in met):
        return replace(row, message=f"{row.message} (this file never ran on the device in this run)")
    return row


def _met(summary: Summary) -> frozenset[str]:
    """Give the files that compiled anything, made a batch or loaded a model."""
    sites = [row.site for row in summary.causes] + [row.site for row in summary.graphs]
    sites += [row.site for row in summary.operators]
    sites += [site for row in summary.placements for site in (row.site, row.loaded)]
    codes = [graph.code.rpartition(":")[0] for graph in summary.graphs]
    return frozenset([*(site.file for site in sites if site), *filter(None, codes)])
