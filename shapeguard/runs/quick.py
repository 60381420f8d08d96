"""The quick way to read a compile line: typed, and parts that come again are not read again.

A long run has a hundred thousand of these lines, and nearly all of them repeat the sites, inputs and modes of others.
What is not written as `core.events` says takes the tolerant way (`lines`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")


class CompileLine(msgspec.Struct, tag_field="type", tag="compile"):
    """The fields of a compile line; those that are no plain value are left as they are written."""

    n: int
    kind: str
    outcome: str
    key: str = ""
    op: str | None = None
    name: str | None = None
    graph: str | None = None
    region: int = 0
    code: msgspec.Raw = msgspec.Raw(b"null")
    instance: int = 0
    inputs: msgspec.Raw = msgspec.Raw(b"[]")
    constants: msgspec.Raw = msgspec.Raw(b"[]")
    guard: str = ""
    modes: msgspec.Raw = msgspec.Raw(b"{}")
    model: str = ""
    config: str = ""
    tp: int = 0
    nodes: int = 0
    operators: msgspec.Raw = msgspec.Raw(b"{}")
    dtypes: msgspec.Raw = msgspec.Raw(b"[]")
    neff: str = ""
    seconds: float | None = None
    collectives: int = 0
    outline: str = ""
    exchange: str = ""
    limit: int = 0
    certainty: str = ""
    step: int = 0
    phase: str = ""
    phase_step: int | None = None
    site: msgspec.Raw = msgspec.Raw(b"null")
    owners: msgspec.Raw = msgspec.Raw(b"[]")


_decode = msgspec.json.Decoder(CompileLine).decode
_decode_part = msgspec.json.Decoder().decode


def compile_line(text: bytes) -> CompileLine | None:
    """Give a line that is a compile as it should be written; None for every other."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Part(Generic[T]):
    """Reads one part of lines, each text of it once."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._known: dict[bytes, T] = {}

    def __call__(self, raw: msgspec.Raw) -> T:
        """Give what is made of the part."""
        text = bytes(raw)
        try:
            return self._known[text]
        except KeyError:
            found = self._known[text] = self._make(_decode_part(text))
            return found
