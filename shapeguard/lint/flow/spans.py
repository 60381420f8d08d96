"""Where nodes stand in the text, found by writing the tree out once; only for files with something to report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import libcst as cst
from libcst._nodes.internal import CodegenState

from shapeguard.core.finding import Span


class _Offsets(CodegenState):
    """Counts the characters written before and after each wanted node."""

    def __init__(self, module: cst.Module, wanted: Iterable[cst.CSTNode]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.length = 0
        self.wanted = set(wanted)
        self.found: dict[cst.CSTNode, tuple[int, int]] = {}
        self._starts: list[int] = []

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.length += len(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(self.length)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if node in self.wanted:
            self.found.setdefault(node, (start, self.length))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = self.length
        yield
        # Without the parentheses, comments and blank lines that the node owns.
        if node in self.wanted:
            self.found[node] = (start, self.length)


class Places:
    """The offsets of the wanted nodes, as characters and as spans in bytes."""

    def __init__(self, module: cst.Module, source: str, wanted: Iterable[cst.CSTNode]) -> None:
        state = _Offsets(module, wanted)
        module._codegen(state)
        self.source = source
        self.offsets = state.found
        self._ascii = source.isascii()

    def byte(self, offset: int) -> int:
        """Give the offset in the UTF-8 bytes of the text."""
        return offset if self._ascii else len(self.source[:offset].encode("utf-8", "surrogatepass"))

    def span(self, node: cst.CSTNode) -> Span:
        """Give the span of a wanted node."""
        start, end = self.offsets[node]
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return Span(
            start=self.byte(start),
            end=self.byte(end),
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
        )

    def position(self, offset: int) -> tuple[int, int]:
        """Give line and column, both from 1; a line ends at LF, CR LF, or a lone CR, as Python has it."""
        before = self.source[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
