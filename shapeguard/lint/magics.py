"""IPython's magics: replaced by expressions without effect that are as long, so that offsets hold."""

from __future__ import annotations

import ast
import re
import warnings

_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3", "pypy", "debug", "memit", "mprun", "lprun")
"""Cell magics whose body is Python for the notebook itself."""


def syntax_error(code: str) -> SyntaxError | None:
    """Why Python does not accept the code; None where it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "nested too deeply")
    return None


_MAGIC = re.compile(r"[%!?]|.*[^?\s]\?\??[ \t]*$|[\w.,\s()\[\]]+=\s*[%!](?!=)")
_TIMED = re.compile(r"%(?:time|timeit|prun|memit|lprun)[ \t]+(?=[^\s-])")
_BRACKETS = re.compile(
    r"#.*|[bruf]{0,2}(\"\"\"|''')|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[(\[{]|[)\]}]|\\\n", re.IGNORECASE
)


def plain_python(source: str) -> str | None:
    """Replace IPython's magics by expressions as long as they are; None where the whole cell is another language."""
    first = re.match(r"\s*%%(\w+)[^\n]*", source)
    if first is not None:
        if first[1].lower() not in _PYTHON_CELLS:
            return None
        magic = first[0].lstrip()
        source = source[: first.end() - len(magic)] + _inert(magic) + source[first.end() :]
    if not re.search(r"^[ \t]*[%!?]|\?[ \t]*$|=[ \t]*[%!]", source, re.MULTILINE):
        return source
    if syntax_error(source) is None:
        return source
    return _without_line_magics(source)


def _without_line_magics(source: str) -> str:
    lines = source.split("\n")
    depth, quote, goes_on, is_joined = 0, "", False, False
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip(" \t"))
        body = line[indent:]
        if goes_on:
            goes_on = line.endswith("\\")
            lines[index] = line[:indent] + _comment(body)
        elif depth == 0 and not quote and not is_joined and _MAGIC.match(body):
            goes_on = line.endswith("\\")
            lines[index] = line[:indent] + _inert(body)
        else:
            depth, quote = _state(line, depth, quote)
            is_joined = line.endswith("\\")
    return "\n".join(lines)


def _inert(magic: str) -> str:
    """An expression without effect, exactly as long; `%time f(x)` keeps its call."""
    timed = _TIMED.match(magic)
    if timed:
        return "0" + " " * (timed.end() - 2) + ";" + magic[timed.end() :]
    size = len(magic.encode("utf-8", "surrogatepass"))
    return "0" if size == 1 else "0#" + "-" * (size - 2)


def _comment(text: str) -> str:
    size = len(text.encode("utf-8", "surrogatepass"))
    return "#" * size


def _state(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Bracket depth and open triple quote after the line."""
    position = 0
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        match = _BRACKETS.search(line, position)
        if match is None:
            break
        position = match.end()
        if match[1]:
            quote = match[1]
        elif match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth = max(0, depth - 1)
    return depth, quote
