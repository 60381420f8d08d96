"""Which of the Python frames on the stack are the user's, and how they are written down."""

from __future__ import annotations

import functools
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parent.parent)


class Sites:
    """Names places in the user's code, relative to the folder the program was started in."""

    def __init__(self, root: str) -> None:
        self._root = str(Path(root).resolve())
        paths = sysconfig.get_paths()
        self._foreign = tuple({paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], _PACKAGE})
        self._known: dict[str, bool] = {}
        self._names: dict[str, str] = {}

    def is_users(self, code: CodeType) -> bool:
        """Tell whether a frame of this code is the user's own."""
        # By file: a code object is not always hashable (a constant slice in it is not).
        return self.is_users_file(code.co_filename)

    def is_users_file(self, filename: str) -> bool:
        """Tell whether a file is the user's own."""
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = self._judge(filename)
        return known

    def _judge(self, filename: str) -> bool:
        if filename.startswith("<") and not filename.startswith("<ipython"):
            return False
        if any(f"/{folder}/" in filename for folder in ("site-packages", "dist-packages")):
            return False
        return not filename.startswith(self._foreign) and not _is_installed(Path(filename))

    def name(self, filename: str) -> str:
        """Give a file's path below the program's folder, or its last two parts."""
        known = self._names.get(filename)
        if known is None:
            known = self._names[filename] = self._shorten(filename)
        return known

    def _shorten(self, filename: str) -> str:
        try:
            path = Path(filename).resolve()
        except OSError:
            return filename
        if path.is_relative_to(self._root):
            return path.relative_to(self._root).as_posix()
        return "/".join(path.parts[-2:])

    def of_code(self, code: CodeType) -> dict[str, Any]:
        """Describe where a function is defined."""
        return {"file": self.name(code.co_filename), "line": code.co_firstlineno, "function": code.co_name}

    def stack(self) -> list[dict[str, Any]]:
        """Give the user's frames, outermost first."""
        rows = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.is_users(frame.f_code):
                rows.append(self.of_frame(frame))
            frame = frame.f_back
        return rows[::-1]

    def innermost(self) -> dict[str, Any] | None:
        """Give the user's innermost frame."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.is_users(frame.f_code):
                return self.of_frame(frame)
            frame = frame.f_back
        return None

    def of_frame(self, frame: FrameType) -> dict[str, Any]:
        """Describe the line that a frame is at."""
        code = frame.f_code
        return {"file": self.name(code.co_filename), "line": frame.f_lineno, "function": code.co_name}


def _is_installed(path: Path) -> bool:
    """Tell whether a distribution lists the file as its own, wherever it was unpacked (`pip install --target`)."""
    for folder in path.parents:
        top = path.relative_to(folder).parts[0]
        if top in _installed_in(str(folder)):
            return True
    return False


@functools.cache
def _installed_in(folder: str) -> frozenset[str]:
    """Give the packages and modules of the distributions that lie in a folder."""
    found: set[str] = set()
    try:
        for record in Path(folder).glob("*.dist-info/RECORD"):
            lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
            found.update(line.split(",")[0].split("/")[0].strip('"') for line in lines)
    except OSError:
        return frozenset()
    return frozenset(name for name in found if not name.endswith(".dist-info") and name not in ("", ".."))
