"""The command that a user wants traced: which form it has, whether it can be started, which interpreter runs it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shapeguard.core.errors import UsageError

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?(\.exe)?|pypy3?")
_TAKES_VALUE = frozenset("WX")
"""Switches of Python that take a value of their own; `-c` and `-m` end the switches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command that can be started."""

    argv: tuple[str, ...]
    """What is executed."""
    shown: tuple[str, ...]
    """What the user wrote."""
    name: str
    """What a run folder is named after."""
    interpreter: str
    """The Python that will run it; empty where the command is no Python that can be recognised."""


def program(words: Sequence[str]) -> Program:
    """Understand `train.py …`, `-m module …` or `-- command …`; `UsageError` where it cannot be started."""
    first, *rest = words
    if first == "--":
        if not rest:
            raise UsageError("no command follows `--`", hint="for example: shapeguard trace -- torchrun train.py")
        return _command(rest)
    if first == "-m":
        if not rest:
            raise UsageError("-m needs a module", hint="for example: shapeguard trace -m pkg.train")
        argv = (sys.executable, *words)
        return Program(argv=argv, shown=tuple(words), name=_name(rest[0]), interpreter=sys.executable)
    return _script(words)


def _script(words: Sequence[str]) -> Program:
    path = Path(words[0])
    if not path.exists():
        hint = "check the path"
        if shutil.which(words[0]) and path.suffix != ".py":
            hint = f"a command goes after `--`: shapeguard trace -- {' '.join(words[:2])} …"
        raise UsageError(f"there is no file {words[0]}", hint=hint)
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise UsageError(f"{words[0]} is a directory", hint="give a script in it, or `-m` and a package")
    if path.is_file() and path.suffix not in (".py", ".pyw", ".pyz"):
        raise UsageError(
            f"{words[0]} is no .py file", hint=f"a command goes after `--`: shapeguard trace -- {words[0]} …"
        )
    if path.is_file() and not os.access(path, os.R_OK):
        raise UsageError(f"{words[0]} cannot be read", hint="check its permissions")
    return Program(
        argv=(sys.executable, *words), shown=tuple(words), name=_name(path.resolve().stem), interpreter=sys.executable
    )


def _command(words: Sequence[str]) -> Program:
    # Commands such as torchrun lie beside this Python, whose environment need not be activated.
    found = shutil.which(words[0]) or shutil.which(words[0], path=str(Path(sys.executable).parent))
    if found is None:
        hint = "give a `.py` file without `--`, or check the name" if not words[0].endswith(".py") else "leave out `--`"
        raise UsageError(f"there is no command {words[0]}", hint=hint)
    line = _first_line(found)
    if _PYTHON.fullmatch(Path(found).name):
        _reject_isolated(words)
        line = [found]
    elif line:
        _reject_isolated(line)
    interpreter = line[0] if line else ""
    argv = (found if shutil.which(words[0]) is None else words[0], *words[1:])
    return Program(argv=argv, shown=("--", *words), name=_name(_subject(words)), interpreter=interpreter)


def _first_line(path: str) -> list[str]:
    """Give the Python, and its switches, in the first line of a script; empty where it is another kind of command."""
    try:
        with Path(path).open("rb") as stream:
            first = stream.readline(1024)
    except OSError:
        return []
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
        words[:1] = [shutil.which(words[0]) or ""] if words else []
    return words if words and _PYTHON.fullmatch(Path(words[0]).name) else []


def _reject_isolated(words: Sequence[str]) -> None:
    """Refuse a Python that ignores PYTHONPATH: it would not see the simulated device."""
    position = 1
    while position < len(words) and words[position].startswith("-") and len(words[position]) > 1:
        word = words[position]
        if not word.startswith("--"):
            for index, letter in enumerate(word[1:], start=1):
                if letter in "IE":
                    raise UsageError(
                        f"`{words[0]} -{letter}` ignores PYTHONPATH, by which the device is handed to the program",
                        hint=f"leave out -{letter}",
                    )
                if letter in "cm":
                    return
                if letter in _TAKES_VALUE:
                    position += index == len(word) - 1
                    break
        elif word == "--":
            return
        position += 1


def _subject(words: Sequence[str]) -> str:
    """Give what a command is about: its script, its module, else the command itself."""
    script = next((word for word in words if word.endswith(".py")), None)
    if script:
        return Path(script).stem
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return Path(words[0]).stem


def _name(text: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")
    return cleaned[:60] or "run"


def shareable(words: Sequence[str], root: Path) -> tuple[str, ...]:
    """Give a command without absolute paths and secrets, so that a run can be shown to others."""
    shown: list[str] = []
    secret = False
    for word in words:
        option, mark, value = word.partition("=")
        if secret or (mark and _is_secret(option)):
            shown.append("***" if secret else f"{option}=***")
        else:
            shown.append(f"{option}={_relative(value, root)}" if mark else _relative(word, root))
        secret = not secret and not mark and _is_secret(word)
    return tuple(shown)


def _is_secret(option: str) -> bool:
    return option.startswith("-") and bool(
        re.search(r"(^|[-_])(token|secret|password|passwd|api[-_]?key|access[-_]?key|credentials?)$", option, re.I)
    )


def _relative(word: str, root: Path) -> str:
    if not word.startswith(("/", "~")) or "\n" in word:
        return word
    path = Path(word)
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return Path(*path.parts[-2:]).as_posix().lstrip("/")
