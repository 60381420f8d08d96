"""JSON for other programs: sorted keys, a schema number, a final newline."""

from __future__ import annotations

import json

from shapeguard.core.report import Report
from shapeguard.report.plain import document
from shapeguard.report.reporter import Reporter, Style


class Json(Reporter):
    """One JSON object."""

    name = "json"
    for_programs = True

    def render(self, report: Report, style: Style) -> str:
        """Give the report's own document, or one made from its findings."""
        body = report.document or document(report)
        return json.dumps(dict(body), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
