"""Whether this process may compile: a switch that the device asks before it would, and what an error then says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

RAISE, WARN = "raise", "warn"
VARIABLE = "SHAPEGUARD_FORBID_COMPILES"
"""`1` or `raise`: a compile is an error; `warn`: it is logged."""
_WORDS = {"": "", "0": "", "false": "", "no": "", "off": "", WARN: WARN}
_log = logging.getLogger("shapeguard")


class CompileForbiddenError(RuntimeError):
    """Something would have compiled while compiling is forbidden; the message says what, why, and at which line."""


@dataclass(slots=True)
class Gate:
    """The switch of this process."""

    mode: str = ""
    """`raise`, `warn`, or empty: everything may compile."""
    explain: Callable[[], str] = str
    """Gives the cause of the compile that was written down last, with its line."""

    def refuse(self, what: str, error: type[CompileForbiddenError] = CompileForbiddenError) -> NoReturn:
        """Raise, since something would compile now."""
        raise error(f"compiling is forbidden here: {self._said(what)}")

    def tell(self, what: str) -> None:
        """Log that something has compiled, where that is asked for."""
        if self.mode == WARN:
            _log.warning("compiled while compiling is forbidden: %s", self._said(what))

    def _said(self, what: str) -> str:
        return self.explain() or what


GATE = Gate()


def mode_of(word: str) -> str:
    """Read the variable's value: what is neither off nor `warn` forbids, so that a slip does not allow."""
    return _WORDS.get(word.strip().lower(), RAISE)
