"""From the bytes of a file to text and back: encoding, byte order mark, offsets. Line ends stay as they are."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace

from shapeguard.core.finding import Edit, Finding

_BOM = codecs.BOM_UTF8
# PEP 263: in the first two lines, the first of which may only be a comment.
_DECLARED = re.compile(rb"\A(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)")


class UnreadableError(Exception):
    """Bytes that are no Python text."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A file's text and how it was written."""

    text: str
    encoding: str
    has_bom: bool

    def encode(self, text: str) -> bytes:
        """Give the bytes of a changed text, written as the file was."""
        return (_BOM if self.has_bom else b"") + text.encode(self.encoding)

    def in_file(self, finding: Finding) -> Finding:
        """Turn offsets in the text's UTF-8 into offsets in the file."""
        if self.encoding == "utf-8" and not self.has_bom:
            return finding
        move = self._move
        span = replace(finding.span, start=move(finding.span.start), end=move(finding.span.end))
        fix = finding.fix and replace(finding.fix, edits=tuple(self._edit(edit) for edit in finding.fix.edits))
        return replace(finding, span=span, fix=fix)

    def _edit(self, edit: Edit) -> Edit:
        return replace(edit, start=self._move(edit.start), end=self._move(edit.end))

    def _move(self, offset: int) -> int:
        before = self.text.encode("utf-8")[:offset].decode("utf-8", "replace")
        return len(before.encode(self.encoding)) + (len(_BOM) if self.has_bom else 0)


def decode(data: bytes) -> Decoded:
    """Decode as Python does: UTF-8 unless the file says otherwise; `UnreadableError` names what is wrong."""
    has_bom = data.startswith(_BOM)
    body = data[len(_BOM) :] if has_bom else data
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UnreadableError("is UTF-16, which Python does not read as source")
    if (nul := body.find(b"\0")) >= 0:
        raise UnreadableError("holds a NUL byte, so it is no Python text", _line(body, nul))
    encoding = _encoding(body)
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        message = f"is not {encoding.upper()}: byte 0x{body[error.start]:02x} at offset {error.start}"
        raise UnreadableError(message, _line(body, error.start)) from None
    except (ValueError, LookupError) as error:
        raise UnreadableError(f"cannot be decoded as {encoding!r}: {error}", 1) from None
    return Decoded(text=text, encoding=encoding, has_bom=has_bom)


def _encoding(body: bytes) -> str:
    declared = _DECLARED.match(body)
    if declared is None:
        return "utf-8"
    name = declared[1].decode("ascii", "replace")
    try:
        info = codecs.lookup(name)
    except LookupError:
        raise UnreadableError(f"names an encoding that Python does not know: {name!r}", 1) from None
    # Codecs such as "hex" or "rot13" turn text into other text.
    if not info._is_text_encoding:
        raise UnreadableError(f"names {name!r}, which is no text encoding", 1)
    return "utf-8" if info.name in ("utf-8", "utf-8-sig", "ascii") else info.name


def _line(body: bytes, offset: int) -> int:
    return len(re.findall(rb"\r\n|\r|\n", body[:offset])) + 1
