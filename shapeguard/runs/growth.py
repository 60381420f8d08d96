"""A tensor that a loop lengthens with `cat`: all that is computed from it grows with it, on whatever line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shapeguard.runs.families import Family
from shapeguard.runs.series import whole

Group = list[Family]


def by_root(groups: Sequence[Group]) -> list[Group]:
    """Join what grows in step with a `cat` to that `cat`'s group, which is led by it.

    Inside `generate()` the library's own lines grow, for reasons that are told apart elsewhere.
    """
    roots = [group for group in groups if _root(group) is not None]
    if not roots:
        return list(groups)
    kept: list[Group] = []
    for group in groups:
        home = None if group in roots else _home(group, roots)
        if home is None:
            kept.append(group)
        else:
            home += group
    for root in roots:
        lead = _root(root)
        root.sort(key=lambda family: family is not lead)
    return kept


def _root(group: Iterable[Family]) -> Family | None:
    """Give the `cat` of a user's line that grows."""
    return next(filter(is_root, group), None)


def is_root(family: Family) -> bool:
    """Whether it is a `cat` of a user's line that makes a tensor longer each time."""
    event = family.events[1]
    is_cat = family.op.startswith("cat") and family.at.kind == "shape" and bool(family.grows)
    return is_cat and event.site is not None and event.phase != "generate"


def _home(group: Group, roots: Sequence[Group]) -> Group | None:
    lead = group[0]
    if not lead.grows or lead.events[1].phase == "generate":
        return None
    found = [(root, _root(root)) for root in roots]
    alike = [(root, cat) for root, cat in found if cat is not None and _is_in_step(lead, cat)]
    best = min(alike, key=lambda pair: lead.of_cache != pair[1].of_cache, default=None)
    return best[0] if best else None


def _is_in_step(family: Family, cat: Family) -> bool:
    """Whether both grow by as much, mostly at the same steps, to the same sizes or to sizes one off."""
    mine, theirs = whole(family.values), whole(cat.values)
    if family.grows != cat.grows or mine is None or theirs is None:
        return False
    sizes = {size + offset for size in theirs for offset in (-1, 0, 1)}
    steps = {step + offset for step in cat.steps for offset in (-1, 0, 1)}
    return 2 * len(set(mine) & sizes) > len(set(mine)) and 2 * len(family.steps & steps) > len(family.steps)
