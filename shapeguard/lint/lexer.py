"""Comments and logical lines of a Python text, without parsing it.

Python's own tokenizer gives up on syntax newer than itself; suppressions must work there too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\r\n]*)
  | (?P<long>[A-Za-z]{0,2}(?:\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)))
  | (?P<short>"(?:[^"\\\r\n]|\\(?:\r\n|.))*"?|'(?:[^'\\\r\n]|\\(?:\r\n|.))*'?)
  | (?P<joined>\\(?:\r\n|\r|\n))
  | (?P<newline>\r\n|\r|\n)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<blank>[ \t\f]+)
  | (?P<code>[A-Za-z0-9_]+|[^\s])
    """,
    re.VERBOSE | re.DOTALL,
)

_LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """Split where Python does, without the line ends; `str.splitlines` knows ten more characters."""
    return _LINE_END.split(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment, with its `#`."""

    text: str
    start: int
    """Offset in characters."""
    line: int
    column: int
    """From 0, in characters."""
    is_alone: bool
    """Nothing but blanks stands before it on its line."""
    in_brackets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A logical line: a simple statement, or the head of a compound one."""

    first: int
    """Its first line, from 1."""
    last: int
    indent: int
    word: str
    """What it begins with: `def`, `@`, `x`."""
    opens_block: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a text is made of, as far as suppressions care."""

    comments: tuple[Comment, ...]
    statements: tuple[Statement, ...]

    def statement_at(self, line: int) -> Statement | None:
        """The logical line that the physical line belongs to."""
        return next((s for s in self.statements if s.first <= line <= s.last), None)

    def next_statement(self, line: int) -> tuple[int, int] | None:
        """First and last line of the whole statement after a line, its block and its other branches included."""
        index = next((i for i, s in enumerate(self.statements) if s.first > line), None)
        if index is None:
            return None
        head = self.statements[index]
        last = head.last
        before = head
        for statement in self.statements[index + 1 :]:
            goes_on = statement.indent > head.indent or (
                statement.indent == head.indent and _continues(before, statement)
            )
            if not goes_on or not (head.opens_block or head.word == "@"):
                break
            last = statement.last
            if statement.indent == head.indent:
                before = statement
        return head.first, last


def _continues(before: Statement, statement: Statement) -> bool:
    return before.word == "@" or statement.word in ("else", "elif", "except", "finally")


class _Reader:
    """Goes through a text once and collects comments and logical lines."""

    def __init__(self) -> None:
        self.comments: list[Comment] = []
        self.statements: list[Statement] = []
        self.line = 1
        self.line_start = 0
        self.depth = 0
        self.first = 0
        self.indent = 0
        self.word = ""
        self.last_code = ""
        self.is_line_empty = True

    def take(self, kind: str, text: str, start: int) -> None:
        if kind == "comment":
            self._comment(text, start)
        elif kind == "newline":
            self._newline(start + len(text))
        elif kind == "joined":
            self._next_line(start + len(text))
        elif kind != "blank":
            self._code(kind, text, start)

    def _comment(self, text: str, start: int) -> None:
        self.comments.append(
            Comment(
                text=text,
                start=start,
                line=self.line,
                column=start - self.line_start,
                is_alone=self.is_line_empty,
                in_brackets=self.depth > 0,
            )
        )

    def _code(self, kind: str, text: str, start: int) -> None:
        if not self.first:
            self.first, self.indent, self.word = self.line, start - self.line_start, text
        self.is_line_empty = False
        self.last_code = text
        if kind == "open":
            self.depth += 1
        elif kind == "close":
            self.depth = max(0, self.depth - 1)
        if kind in ("long", "short") and ("\n" in text or "\r" in text):
            ends = [match.end() for match in _LINE_END.finditer(text)]
            self.line += len(ends)
            self.line_start = start + ends[-1]

    def _newline(self, end: int) -> None:
        if self.depth == 0:
            self.close()
        self._next_line(end)

    def _next_line(self, end: int) -> None:
        self.line += 1
        self.line_start = end
        self.is_line_empty = True

    def close(self) -> None:
        if self.first:
            self.statements.append(
                Statement(
                    first=self.first,
                    last=self.line,
                    indent=self.indent,
                    word=self.word,
                    opens_block=self.last_code == ":",
                )
            )
        self.first = 0


def read_layout(source: str) -> Layout:
    """Collect the comments and logical lines of a text; any text will do."""
    reader = _Reader()
    for token in _TOKEN.finditer(source):
        assert token.lastgroup is not None
        reader.take(token.lastgroup, token[0], token.start())
    reader.close()
    return Layout(comments=tuple(reader.comments), statements=tuple(reader.statements))
