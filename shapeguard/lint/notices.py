"""What the engine itself reports, beside the rules: the codes SG9xx."""

from __future__ import annotations

from functools import lru_cache
from inspect import cleandoc

from shapeguard.core.finding import Severity
from shapeguard.core.rules import RuleEntry
from shapeguard.lint.rule import Rule, load_rules

UNUSED = "SG901"
UNREADABLE = "SG902"

_UNUSED_PAGE = """
A comment that suppresses a rule where the rule says nothing.

## Why it costs
Nothing today. But the comment hides the next finding of that line, and its reason no longer holds.

## Example
```python
import torch

x = torch.ones(3)  # shapeguard: ignore[SG101] loaded on the CPU on purpose
```

## Instead
```python
import torch

x = torch.ones(3)
```

## Fix
Safe: the code is taken out of the comment, and the comment with its last code. A code that is not selected, or that
speaks only in code for Neuron, is not judged elsewhere.
"""

_UNREADABLE_PAGE = """
A file that could not be read or parsed, so that nothing in it was checked.

It is listed under the problems, not under the findings, and the other files are checked as usual. The run then ends
with exit code 1, or with 2 if no file could be checked. `--ignore SG902` passes over such files.

Every file in which a rule might speak is parsed. Files without any word a rule waits for are parsed too when they are
named on the command line, or when they come to less than 4 MB in all.

## Example
```text
def train(:
```

## Fix
None. Exclude files that are not meant to be Python, with `exclude` in `[tool.shapeguard.lint]`.
"""

NOTICES = (
    RuleEntry(
        code=UNUSED,
        name="UnusedSuppression",
        message="this comment suppresses nothing",
        severity=Severity.WARNING,
        neuron_only=False,
        on_by_default=True,
        documentation=_UNUSED_PAGE.strip(),
    ),
    RuleEntry(
        code=UNREADABLE,
        name="UnreadableFile",
        message="this file could not be read or parsed",
        severity=Severity.ERROR,
        neuron_only=False,
        on_by_default=True,
        documentation=_UNREADABLE_PAGE.strip(),
    ),
)


@lru_cache
def catalogue() -> dict[str, RuleEntry]:
    """Every rule and notice by its code, in the order of the codes."""
    entries = [_entry(rule) for rule in load_rules().values()]
    return {entry.code: entry for entry in sorted([*entries, *NOTICES], key=lambda entry: entry.code)}


def _entry(rule: type[Rule]) -> RuleEntry:
    return RuleEntry(
        code=rule.code,
        name=rule.__name__,
        message=rule.message,
        severity=rule.severity,
        neuron_only=rule.neuron_only,
        on_by_default=rule.on_by_default,
        documentation=cleandoc(rule.__doc__ or ""),
    )
