"""Where the cache lies, and whether that folder is fit to be used."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from shapeguard.core.errors import CacheError

STORE = "v1"
"""Folder of the records below the cache's own; another layout would get another name."""
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by shapeguard: it can be made again.\n"
_HINT = "give another with SHAPEGUARD_CACHE_DIR, or set SHAPEGUARD_NO_CACHE=1"


def default_folder(environment: Mapping[str, str], setting: str = "") -> Path:
    """Give the cache's folder: as set, or `$XDG_CACHE_HOME/shapeguard`."""
    given = setting or environment.get("SHAPEGUARD_CACHE_DIR", "")
    if given:
        return Path(given).expanduser()
    home = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path there is to be ignored.
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache"
    return base / "shapeguard"


def prepare(folder: Path, *, for_reading: bool = False) -> Path:
    """Make the folder, private and marked as a cache, and give the folder of its records; `CacheError` if unfit.

    `for_reading`: one that is there and cannot be written to is taken as it is.
    """
    store = folder / STORE
    try:
        if for_reading and store.is_dir() and not os.access(store, os.W_OK):
            _refuse_unsafe(folder)
            _refuse_link(store)
            return store
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        store.mkdir(mode=0o700, exist_ok=True)
        _refuse_unsafe(folder)
        _refuse_link(store)
        tag = folder / _TAG
        if not os.path.lexists(tag):
            tag.write_text(_TAG_TEXT, encoding="utf-8")
        _refuse_without_locks(tag)
    except OSError as error:
        raise CacheError(f"cannot use the cache folder {folder}: {error.strerror or error}", hint=_HINT) from error
    return store


def _refuse_unsafe(folder: Path) -> None:
    found = folder.stat()
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise CacheError(f"the cache folder {folder} can be written by everyone", hint=f"chmod 700 {folder}")


def _refuse_without_locks(tag: Path) -> None:
    """Tell a file system without locks, which SQLite would take for one whose locks are all held."""
    descriptor = os.open(tag, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise CacheError(
                f"cannot use the cache folder {tag.parent}: its file system has no locks ({error.strerror})",
                hint="use a folder on a local disk: SHAPEGUARD_CACHE_DIR",
            ) from error
    finally:
        os.close(descriptor)


def _refuse_link(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        raise CacheError(f"{path} is no plain folder", hint="remove it, or give another with SHAPEGUARD_CACHE_DIR")


def plain_file(path: Path) -> bool:
    """Whether a file is there; `CacheError` where something else stands at its place, such as a link."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CacheError(f"cannot look at {path}: {error.strerror or error}", hint=_HINT) from error
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise CacheError(f"{path} is no plain file", hint="remove it: the cache is not to lead anywhere else")
    return True


def scratch_file(folder: Path, *, prefix: str = ".", suffix: str = ".tmp") -> tuple[int, Path]:
    """Make a file of a name of its own, with the mode that the umask gives: `mkstemp` would keep it to one user."""
    while True:
        path = folder / f"{prefix}{secrets.token_hex(6)}{suffix}"
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), path


def make_below(root: Path, folder: Path) -> None:
    """Make a folder below a root, step by step: a link on the way would lead out of it and is an error."""
    root.mkdir(parents=True, exist_ok=True)
    step = root
    for part in folder.relative_to(root).parts:
        step = step / part
        with contextlib.suppress(FileExistsError):
            step.mkdir()
        if step.is_symlink() or not step.is_dir():
            raise CacheError(f"{step} is a link or a file", hint="only plain folders may stand there: remove it")
