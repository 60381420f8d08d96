"""Which rules are checked: codes and their beginnings, chosen and left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from shapeguard.core.errors import ConfigError
from shapeguard.core.rules import RuleEntry

ALL = "ALL"


def select(
    entries: Collection[RuleEntry],
    *,
    select: Sequence[str] = (),
    extend: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> frozenset[str]:
    """Give the chosen codes: of `select` and `ignore` the more exact one wins, and `ignore` where both are alike."""
    chosen = [*_checked(select, entries), *_checked(extend, entries)]
    left_out = _checked(ignore, entries)
    return frozenset(
        entry.code
        for entry in entries
        if _weight(entry, chosen, fallback=0 if not select and entry.on_by_default else -1)
        > _weight(entry, left_out, fallback=-1)
    )


def matching(selectors: Iterable[str], entries: Collection[RuleEntry]) -> frozenset[str]:
    """Give every code that one of the selectors names."""
    known = _checked(selectors, entries)
    return frozenset(entry.code for entry in entries if _weight(entry, known, fallback=-1) >= 0)


def _weight(entry: RuleEntry, selectors: Iterable[str], *, fallback: int) -> int:
    """How exactly a rule is named: the length of the longest selector that fits."""
    return max((0 if s == ALL else len(s) for s in selectors if s == ALL or entry.code.startswith(s)), default=fallback)


def _checked(selectors: Iterable[str], entries: Collection[RuleEntry]) -> list[str]:
    """Give the selectors in capitals; one that names no rule is a mistake."""
    known = [selector.strip().upper() for selector in selectors]
    codes = [entry.code for entry in entries]
    for selector in known:
        if selector == ALL or (selector and any(code.startswith(selector) for code in codes)):
            continue
        close = get_close_matches(selector, codes, n=1, cutoff=0.75)
        hint = f"did you mean {close[0]}?" if close else "`shapeguard rule --all` lists the rules"
        raise ConfigError(f"no rule is called {selector!r}", hint=hint)
    return known
