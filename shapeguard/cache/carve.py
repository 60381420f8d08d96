"""Records out of a broken database, page by page, without SQLite: it reads no row of a file that was cut off.

Every page of a table's rows is looked at by itself, in the database and in its write-ahead log, so that a page that
is gone costs the rows on it and no more. What is found is no more than bytes until the codec has taken it for a whole
record. See https://www.sqlite.org/fileformat2.html for the layout.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from shapeguard.cache.codec import MAX_BYTES

_MAGIC = b"SQLite format 3\0"
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_LEAF = 13
"""First byte of a page with rows."""
_COLUMNS = 12
"""Columns of diskcache's table, its row number included."""
_KEY, _RAW, _MODE, _VALUE = 1, 2, 9, 11
_INTEGER_BYTES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
_MOST_PAYLOAD = MAX_BYTES + 4096
_GAIN = 8
"""Bytes that are read for each byte of the file, at most: chains of pages can be made to be read again and again."""
Pages = Mapping[int, tuple[int, int]]
"""Number of a page to the file and the place it stands at."""


def carved(database: Path) -> Iterator[tuple[str, bytes]]:
    """Give key and value of each row that can still be read; links are not followed."""
    with _opened(database) as main:
        if main is None:
            return
        layout = _Layout(main.read(100))
        size = os.fstat(main.fileno()).st_size
        budget = [_GAIN * size + _MOST_PAYLOAD]
        own = {number + 1: (main.fileno(), number * layout.page) for number in range(-(-size // layout.page))}
        yield from _rows(own, own, layout, budget)
        with _opened(database.with_name(f"{database.name}-wal")) as log:
            if log is None:
                return
            newer = _logged(log, layout)
            budget[0] += _GAIN * os.fstat(log.fileno()).st_size
            yield from _rows(newer, {**own, **newer}, layout, budget)


class _Layout:
    """How large pages are, and how much of a row stands on its own page."""

    def __init__(self, header: bytes) -> None:
        page, reserved = 4096, 0
        if header.startswith(_MAGIC) and len(header) > 20:
            page = int.from_bytes(header[16:18], "big")
            page, reserved = 65536 if page == 1 else page, header[20]
        # A header that cannot be is no reason to give up: nearly all databases have this size.
        self.page = page if page >= 512 and page & (page - 1) == 0 else 4096
        self.usable = self.page - reserved

    def local(self, payload: int) -> int:
        """Give how many bytes of a row stand on its own page."""
        most = self.usable - 35
        if payload <= most:
            return payload
        least = (self.usable - 12) * 32 // 255 - 23
        wanted = least + (payload - least) % (self.usable - 4)
        return wanted if wanted <= most else least


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    """Open a file; gives None where there is no plain one."""
    if path.is_symlink() or not path.is_file():
        yield None
        return
    with path.open("rb") as stream:
        yield stream


def _logged(log: BinaryIO, layout: _Layout) -> Pages:
    """Give the pages of a write-ahead log, the newest of each number."""
    header = log.read(32)
    if len(header) < 32 or int.from_bytes(header[:4], "big") not in _WAL_MAGIC:
        return {}
    found: dict[int, tuple[int, int]] = {}
    place = 32
    while len(frame := log.read(24)) == 24:
        # Frames of an earlier round have another salt, and none of this one follow.
        if frame[8:16] != header[16:24]:
            break
        found[int.from_bytes(frame[:4], "big")] = (log.fileno(), place + 24)
        place += 24 + layout.page
        log.seek(place)
    return found


def _rows(looked_at: Pages, pages: Pages, layout: _Layout, budget: list[int]) -> Iterator[tuple[str, bytes]]:
    for number in looked_at:
        page = _page(looked_at, number, layout, budget)
        start = 100 if number == 1 else 0
        if len(page) < start + 8 or page[start] != _LEAF:
            continue
        (cells,) = struct.unpack_from(">H", page, start + 3)
        for each in range(min(cells, (len(page) - start - 8) // 2)):
            (at,) = struct.unpack_from(">H", page, start + 8 + 2 * each)
            row = _row(page, at, pages, layout, budget)
            if row is not None:
                yield row
        if budget[0] < 0:
            return


def _page(pages: Pages, number: int, layout: _Layout, budget: list[int]) -> bytes:
    if number not in pages or budget[0] < 0:
        return b""
    budget[0] -= layout.page
    file, place = pages[number]
    return os.pread(file, layout.page, place)


def _row(page: bytes, at: int, pages: Pages, layout: _Layout, budget: list[int]) -> tuple[str, bytes] | None:
    """Give key and value of the row at a place of a page; None where it is none of ours or not whole."""
    try:
        payload, at = _number(page, at)
        _, at = _number(page, at)
        if payload > _MOST_PAYLOAD:
            return None
        local = layout.local(payload)
        data = bytearray(page[at : at + local])
        follows = page[at + local : at + local + 4]
        while len(data) < payload:
            more = _page(pages, int.from_bytes(follows, "big"), layout, budget)
            if len(more) < 4:
                return None
            follows = more[:4]
            data += more[4 : min(layout.usable, 4 + payload - len(data))]
        return _columns(bytes(data))
    except IndexError:
        return None


def _columns(data: bytes) -> tuple[str, bytes] | None:
    place, at = _number(data, 0)
    head = place
    values: list[tuple[int, bytes]] = []
    while at < head:
        kind, at = _number(data, at)
        size = _INTEGER_BYTES[kind] if kind < 10 else (kind - 12) // 2
        if kind in (10, 11) or place + size > len(data):
            return None
        values.append((kind, data[place : place + size]))
        place += size
    if len(values) != _COLUMNS or not (_is_one(values[_RAW]) and _is_one(values[_MODE])):
        return None
    (key_kind, key), (value_kind, value) = values[_KEY], values[_VALUE]
    is_ours = key_kind > 12 and key_kind % 2 and value_kind >= 12 and value_kind % 2 == 0
    return (key.decode("ascii", "replace"), value) if is_ours else None


def _is_one(value: tuple[int, bytes]) -> bool:
    kind, data = value
    return kind == 9 or (kind == 1 and data == b"\1")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of SQLite's, seven bits a byte, and give where it ends."""
    found = 0
    for place in range(at, at + 8):
        byte = data[place]
        found = found << 7 | byte & 0x7F
        if byte < 0x80:
            return found, place + 1
    return found << 8 | data[at + 8], at + 9
