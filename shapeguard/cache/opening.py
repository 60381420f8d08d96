"""Opening the database: one process or thread at a time, and for reading alone where nothing can be written."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from diskcache.core import DEFAULT_SETTINGS

from shapeguard.cache.disk import RecordDisk
from shapeguard.cache.insides import DATABASE, SETTINGS, TIMEOUT_S, Rows, limited, vet

_TRIES = 5
_PAUSE_S = 0.05
_TURN_S = 10.0
"""How long an opening waits for that of another; a stopped process must not stop all."""


def opened(folder: Path) -> Rows:
    """Open the database in a folder that may be written to."""
    for attempt in range(1, _TRIES):
        with _turn(folder):
            try:
                return Rows(folder)
            except sqlite3.OperationalError as error:
                # Another that closes removes the files beside the database: they are made anew.
                if "unable to open" not in str(error) or not is_writable(folder):
                    raise
        time.sleep(_PAUSE_S * attempt)
    return Rows(folder)


def opened_for_reading(folder: Path) -> Rows:
    """Open the database, in a folder that cannot be written to without the least trace."""
    if is_writable(folder):
        return opened(folder)
    return _ReadOnlyRows(folder)


def is_writable(folder: Path) -> bool:
    """Whether a database can be made or changed in a folder."""
    database = folder / DATABASE
    return os.access(folder, os.W_OK) and (not database.exists() or os.access(database, os.W_OK))


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Let one at a time set a database up: SQLite cannot wait for another that changes its journal's mode."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + _TURN_S
        while time.monotonic() < deadline:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.002)
            except OSError:
                break  # no locks on folders here: the tries above have to do
        yield
    finally:
        os.close(descriptor)


class _ReadOnlyRows(Rows):
    """The same queries where nothing can be written: on a mounted image, in a folder of another user."""

    def __init__(self, folder: Path) -> None:
        """Do what diskcache does on opening, but for everything that it writes."""
        self._mode = "mode=ro" if _can_be_read(folder, "mode=ro") else "immutable=1"
        vet(folder, self._mode)
        self._directory = str(folder)
        self._timeout = TIMEOUT_S
        self._local = threading.local()
        self._txn_id = None
        self._disk = RecordDisk(self._directory)
        for name, value in {**DEFAULT_SETTINGS, **SETTINGS, "statistics": 0}.items():
            if not name.startswith(("sqlite_", "disk_")):
                setattr(self, name, value)
        ((self._page_size,),) = self.run("PRAGMA page_size").fetchall()

    @property
    def _con(self) -> sqlite3.Connection:
        known: sqlite3.Connection | None = getattr(self._local, "con", None)
        if known is None or self._local.pid != os.getpid():
            known = limited(_connected(Path(self._directory), self._mode))
            self._local.con, self._local.pid = known, os.getpid()
        return known


def _connected(folder: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str(folder / DATABASE))}?{mode}"
    return sqlite3.connect(address, uri=True, timeout=TIMEOUT_S, isolation_level=None)


def _can_be_read(folder: Path, mode: str) -> bool:
    """Whether SQLite can read in this way: with a write-ahead log it needs files that it cannot make here."""
    con = _connected(folder, mode)
    try:
        con.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.OperationalError:
        return False
    finally:
        con.close()
    return True
