"""Where a rule is explained, as an address that programs can carry."""

from __future__ import annotations


def rule_url(code: str) -> str:
    """Give the address of a rule's page.

    A URN, since the project has no public home yet: `shapeguard rule CODE` prints the page.
    """
    return f"urn:shapeguard:rule:{code}"
