"""What a rule is: a class with a code, the words it waits for, and the visits that report.

Nothing here imports libcst, nor may the module of a rule: a clean file is judged without it. A rule sees the code
through `self.flow`, which knows names, values and calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from shapeguard.core.finding import Severity
from shapeguard.core.plugins import load

if TYPE_CHECKING:
    import libcst as cst

    from shapeguard.lint.flow.calls import Invocation
    from shapeguard.lint.flow.draft import Draft
    from shapeguard.lint.flow.facts import Facts
    from shapeguard.lint.visit import Context


Groups: TypeAlias = tuple[tuple[str, ...], ...]


IMPORTS = tuple(
    f"\n{indent}{how} {package}"
    for indent in ("", " " * 4, " " * 8, " " * 12, "\t")
    for how in ("from", "import")
    for package in ("transformers", "peft", "trl")
)
"""Words of an import of what has `generate()`, as opposed to one in a text or in an example after `>>>`."""


def imported(package: str, *names: str) -> Groups:
    """Atoms of a name that comes from the package: imported as such, by a star, or reached through a module."""
    found: Groups = ()
    for name in names:
        found += ((f"{package}:{name}",), (f"_:{name}", f"^{package}"), (f"{package}:*", name))
    return found


def both(*choices: Groups) -> Groups:
    """Give the groups that hold one group of each choice."""
    found: Groups = ((),)
    for choice in choices:
        found = tuple((*left, *right) for left in found for right in choice)
    return found


ONLY_TRANSFORMERS = "cache_implementation"
"""A setting that no other library's `generate()` has: it shows transformers where the file imports none."""
SHOWS_TRANSFORMERS = ("^transformers", f"generate({ONLY_TRANSFORMERS}")
"""The atoms of the import and of the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A place that a rule reports; spans and edits are computed from it later."""

    rule: type[Rule]
    node: cst.CSTNode
    message: str
    severity: Severity
    draft: Draft | None


class Rule:
    """A pattern that costs compiles; the docstring of a subclass is its documentation page."""

    code: ClassVar[str] = ""
    message: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.WARNING
    neuron_only: ClassVar[bool] = False
    """Speaks only in code for Neuron."""
    on_by_default: ClassVar[bool] = True
    triggers: ClassVar[Groups] = ()
    """The rule can only fire in a text that holds all words of one of these groups."""
    patterns: ClassVar[tuple[str, ...]] = ()
    """One of these must also match somewhere in the code, where words alone let too much through.

    Each begins with plain letters: Python then finds its beginning many times faster than that of a choice.
    """
    gate: ClassVar[Groups] = ()
    """Like `triggers`, but atoms of Python's own tree (see `atoms.py`); nothing: all may match."""
    known: ClassVar[dict[str, type[Rule]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the rule; a missing part or a second rule of one code is a mistake of ours."""
        for part in ("code", "message", "triggers", "__doc__"):
            if not getattr(cls, part):
                raise TypeError(f"{cls.__name__} has no {part}")
        if cls.code in Rule.known:
            raise TypeError(f"two rules have the code {cls.code!r}")
        Rule.known[cls.code] = cls

    def __init__(self, flow: Facts, context: Context) -> None:
        self.flow = flow
        self.context = context
        self.matches: list[Match] = []

    def visit_Call(self, call: Invocation) -> None:
        """Look at one call; what a `partial`, a thread or an executor will call is one too."""

    def visit_Module(self) -> None:
        """Look at the file as a whole, after its calls."""

    def report(
        self,
        node: cst.CSTNode,
        *,
        message: str = "",
        severity: Severity | None = None,
        fix: Draft | None = None,
    ) -> None:
        """Report the node, unless it stands where the code never runs on Neuron."""
        if self.flow.never_on_neuron(node) or any(match.node is node for match in self.matches):
            return
        self.matches.append(
            Match(
                rule=type(self),
                node=node,
                message=message or self.message,
                severity=severity or self.severity,
                draft=fix,
            )
        )


@cache
def load_rules() -> dict[str, type[Rule]]:
    """Give every rule of `lint/rules` by its code, in the order of the codes."""
    from shapeguard.lint import rules

    load(rules)
    return dict(sorted(Rule.known.items()))
