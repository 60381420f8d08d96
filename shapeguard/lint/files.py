"""Which files are checked: what the user named, and what a walk through the named folders finds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shapeguard.core.finding import Problem
from shapeguard.lint.globs import Patterns, lines_of
from shapeguard.lint.scope import Scope, ScopeFor, whole_path
from shapeguard.lint.task import FixMode, Task

SUFFIXES = (".py", ".pyi", ".ipynb")
CONFIG_FILES = frozenset({"shapeguard.toml", "pyproject.toml"})
_IGNORE_FILES = (".gitignore", ".ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to be checked."""

    file: Path
    path: str
    """As it is shown: as the user gave it, with forward slashes."""
    scope: Scope
    size: int
    is_named: bool
    """The user named the file itself."""

    @property
    def is_notebook(self) -> bool:
        """Whether its name says so."""
        return self.file.suffix.lower() == ".ipynb"

    def task(self, *, fix: FixMode, must_parse: bool) -> Task:
        """Say how the file is to be judged."""
        task = self.scope.task(self.file, path=self.path, is_notebook=self.is_notebook, fix=fix)
        return replace(task, must_parse=must_parse)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ignores:
    """An ignore file's patterns and the folder they count from."""

    folder: str
    patterns: Patterns


class Walk:
    """Collects files; `problems` tells what could not be looked at."""

    def __init__(self, scope_for: ScopeFor) -> None:
        self.problems: list[Problem] = []
        self._scope_for = scope_for
        self._seen: set[tuple[int, int]] = set()

    def collect(self, paths: Sequence[Path]) -> list[Source]:
        """Give the files of the paths, each once, files before folders, links last."""
        found: list[Source] = []
        for path in paths:
            try:
                mode = path.stat()
            except (OSError, ValueError) as error:
                self._problem(shown(path), error)
                continue
            found += self._folder(path) if stat.S_ISDIR(mode.st_mode) else self._named(path, mode)
        return found

    def _named(self, path: Path, mode: os.stat_result) -> Iterator[Source]:
        scope = self._scope_for(path.parent)
        if scope.settings.force_exclude and scope.is_excluded(whole_path(path)):
            return
        if not stat.S_ISREG(mode.st_mode):
            message = "is no regular file; pipe it in: `shapeguard lint -`"
            self.problems.append(Problem(path=shown(path), message=message))
            return
        yield from self._source(path, shown(path), scope, mode, is_named=True)

    def _source(self, file: Path, path: str, scope: Scope, mode: os.stat_result, *, is_named: bool) -> Iterator[Source]:
        identity = (mode.st_dev, mode.st_ino)
        # Two names of one file, by a link or because the user named it twice: fixed twice would be once too often.
        if mode.st_ino and identity in self._seen:
            return
        self._seen.add(identity)
        yield Source(file=file, path=path, scope=scope, size=mode.st_size, is_named=is_named)

    def _folder(self, folder: Path) -> Iterator[Source]:
        scope = self._scope_for(folder)
        if scope.settings.force_exclude and scope.is_excluded(whole_path(folder)):
            return
        ignores = _outer_ignores(folder) if scope.settings.respect_gitignore else []
        yield from self._walk(os.fspath(folder), whole_path(folder).rstrip("/"), scope, ignores)

    def _walk(self, folder: str, whole: str, scope: Scope, ignores: list[_Ignores]) -> Iterator[Source]:
        """Walk a folder, which is `folder` for the user and `whole` for patterns; files come before folders."""
        # A stack of our own: folders can lie deeper than Python's.
        left = [(folder, whole, scope, ignores)]
        links: list[tuple[os.DirEntry[str], Scope]] = []
        while left:
            folder, whole, scope, ignores = left.pop()
            listed = self._listed(folder)
            names = {entry.name for entry in listed}
            if names & CONFIG_FILES:
                scope = self._scope_for(Path(folder))
            if scope.settings.respect_gitignore:
                ignores = [*ignores, *_ignores_in(folder, names)]
            for entry in listed:
                is_file = entry.name.endswith(SUFFIXES) and not _is_folder(entry)
                if not is_file or _is_left_out(f"{whole}/{entry.name}", scope, ignores, is_folder=False):
                    continue
                if entry.is_symlink():
                    links.append((entry, scope))
                else:
                    yield from self._entry(entry, scope)
            folders = [(entry.path, f"{whole}/{entry.name}") for entry in listed if _is_folder(entry)]
            left += [
                (path, below, scope, ignores)
                for path, below in reversed(folders)
                if not _is_left_out(below, scope, ignores, is_folder=True)
            ]
        for entry, its_scope in links:
            # After the files themselves, which then are known by their own names.
            yield from self._entry(entry, its_scope)

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._problem(shown(Path(folder)), error)
            return []

    def _entry(self, entry: os.DirEntry[str], scope: Scope) -> Iterator[Source]:
        try:
            mode = entry.stat()
        except OSError as error:
            if not entry.is_symlink():
                self._problem(shown(Path(entry.path)), error)
            return
        if stat.S_ISREG(mode.st_mode):
            file = Path(entry.path)
            yield from self._source(file, shown(file), scope, mode, is_named=False)

    def _problem(self, path: str, error: OSError | ValueError) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.problems.append(Problem(path=path, message=f"could not be read: {reason}"))


def shown(path: Path) -> str:
    """The path as reports write it: forward slashes, no leading `./`, printable as UTF-8."""
    return path.as_posix().encode("utf-8", "backslashreplace").decode("utf-8")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_left_out(whole: str, scope: Scope, ignores: Sequence[_Ignores], *, is_folder: bool) -> bool:
    if scope.excluded.decide(scope.relative(whole), is_folder=is_folder):
        return True
    for ignore in reversed(ignores):
        decided = ignore.patterns.decide(whole[len(ignore.folder) + 1 :], is_folder=is_folder)
        if decided is not None:
            return decided
    return False


def _ignores_in(folder: str, names: Iterable[str]) -> list[_Ignores]:
    return [
        _Ignores(folder=whole_path(folder).rstrip("/"), patterns=patterns)
        for name in _IGNORE_FILES
        if name in names and (patterns := _patterns(Path(folder, name)))
    ]


def _patterns(file: Path) -> Patterns:
    try:
        return Patterns(lines_of(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return Patterns([])


def _outer_ignores(folder: Path) -> list[_Ignores]:
    """The ignore files above a folder, up to the root of its git repository."""
    whole = Path(whole_path(folder))
    root = next((parent for parent in (whole, *whole.parents) if (parent / ".git").exists()), None)
    if root is None:
        return []
    found: list[_Ignores] = []
    exclude = _patterns(root / ".git" / "info" / "exclude")
    if exclude:
        found.append(_Ignores(folder=root.as_posix().rstrip("/"), patterns=exclude))
    between = [parent for parent in reversed(whole.parents) if parent == root or root in parent.parents]
    for parent in between:
        found += _ignores_in(os.fspath(parent), _IGNORE_FILES)
    # Who names an ignored folder means it: the rules that leave it out would leave out all in it.
    for parent in (whole, *whole.parents):
        if parent == root:
            break
        if any(_leaves_out(ignore, parent.as_posix()) for ignore in found):
            return []
    return found


def _leaves_out(ignore: _Ignores, folder: str) -> bool:
    is_below = folder.startswith(f"{ignore.folder}/")
    return is_below and bool(ignore.patterns.decide(folder[len(ignore.folder) + 1 :], is_folder=True))
