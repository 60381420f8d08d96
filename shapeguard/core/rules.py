"""What a report says about a rule; the part that has the rule fills it in."""

from __future__ import annotations

from dataclasses import dataclass

from shapeguard.core.finding import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEntry:
    """A rule as the command line and the reports speak of it."""

    code: str
    name: str
    message: str
    severity: Severity
    neuron_only: bool = False
    """Speaks only in code for Neuron."""
    on_by_default: bool = True
    documentation: str = ""
    """The page, in Markdown."""

    @property
    def summary(self) -> str:
        """The first paragraph of the page, on one line."""
        return self.documentation.split("\n\n")[0].replace("\n", " ") or self.message
