"""Comments that suppress findings, and those that suppress nothing.

`# shapeguard: ignore[SG201] reason` at the end of a line is for that line, and on the first or last line of a statement
for the whole logical line. On a line of its own it is for the next statement, its block included (inside brackets: for
the next line). `# shapeguard: file-ignore[SG201]` is for the file. `# noqa: SG201` is for its line like the first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from shapeguard.core.finding import Edit, Finding, Fix, Severity, Span
from shapeguard.lint.lexer import Comment, Layout, read_layout
from shapeguard.lint.notices import UNUSED

_OURS = re.compile(
    r"#\s*shapeguard:\s*(?P<kind>file-ignore|ignore)(?P<codes>\s*\[(?P<list>[^\]]*)\])?(?P<reason>[^#]*)", re.IGNORECASE
)
_NOQA = re.compile(
    r"#\s*noqa\b(?:\s*:\s*(?P<list>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*))?(?P<reason>[^#]*)", re.IGNORECASE
)
_CODE = re.compile(r"[^,\s]+")
_MENTION = re.compile(r"shapeguard:\s*(?:file-)?ignore|noqa\s*:[^\n]*\bSG\d", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Suppression:
    """One comment's claim on lines of the file."""

    comment: Comment
    start: int
    """Offset in characters of the directive, which may be only a part of the comment."""
    end: int
    text: str
    codes: list[tuple[str, int, int]]
    """Codes with their offsets in the file."""
    reason: str
    lines: range | None
    """The lines it is for; None: the whole file."""
    everything: bool = False
    """A bare `# noqa`."""
    is_noqa: bool = False
    used: set[str] = field(default_factory=set)

    def covers(self, finding: Finding) -> bool:
        """Whether the finding stands in its lines and has one of its codes."""
        if not self.everything and finding.code not in {code.upper() for code, _, _ in self.codes}:
            return False
        lines = self.lines
        return lines is None or finding.span.line in lines or finding.span.end_line in lines


def mentions_suppression(source: str) -> bool:
    """Whether the text may hold a comment that could be unused."""
    return _MENTION.search(source) is not None


def read_suppressions(source: str) -> list[Suppression]:
    """Find the comments that suppress."""
    layout = read_layout(source)
    return [found for comment in layout.comments for found in _directives(comment, layout)]


def suppress(findings: Iterable[Finding], suppressions: Sequence[Suppression]) -> list[Finding]:
    """Mark what is suppressed with its reason, and remember which codes of which comment were of use."""
    marked = []
    for finding in findings:
        covering = [suppression for suppression in suppressions if suppression.covers(finding)]
        for suppression in covering:
            suppression.used.add(finding.code)
        marked.append(replace(finding, suppressed=covering[0].reason) if covering else finding)
    return marked


def unused(source: str, suppressions: Sequence[Suppression], *, judged: Collection[str], known: Collection[str],
           path: str) -> Iterator[Finding]:  # fmt: skip
    """Report comments of no use: codes that were judged and did not appear, that do not exist, or no codes at all."""
    for suppression in suppressions:
        if suppression.everything:
            continue
        if not suppression.codes:
            yield _finding(source, suppression, path, "it names no code: write `ignore[SG201]`", None)
            continue
        idle = [item for item in suppression.codes if _is_idle(item[0].upper(), suppression, judged, known)]
        if idle:
            names = ", ".join(code for code, _, _ in idle)
            unknown = [code for code, _, _ in idle if code.upper() not in known]
            why = f"there is no rule {', '.join(unknown)}" if unknown else f"nothing to suppress: {names}"
            yield _finding(source, suppression, path, why, _removal(source, suppression, idle))


def _is_idle(code: str, suppression: Suppression, judged: Collection[str], known: Collection[str]) -> bool:
    if suppression.is_noqa and not code.startswith("SG"):
        return False
    if code == UNUSED:
        return False
    return code not in suppression.used and (code in judged or code not in known)


def _directives(comment: Comment, layout: Layout) -> Iterator[Suppression]:
    for match in _OURS.finditer(comment.text):
        kind = match["kind"].lower()
        lines = None if kind == "file-ignore" else _lines(comment, layout)
        yield _suppression(comment, match, lines)
    for match in _NOQA.finditer(comment.text):
        yield replace(
            _suppression(comment, match, _line_or_statement(comment, layout)),
            everything=match["list"] is None,
            is_noqa=True,
        )


def _suppression(comment: Comment, match: re.Match[str], lines: range | None) -> Suppression:
    codes = []
    if match["list"]:
        base = comment.start + match.start("list")
        codes = [(code[0], base + code.start(), base + code.end()) for code in _CODE.finditer(match["list"])]
    text = match[0].rstrip()
    return Suppression(
        comment=comment,
        start=comment.start + match.start(),
        end=comment.start + match.start() + len(text),
        text=text,
        codes=codes,
        reason=match["reason"].strip(" \t-:—"),
        lines=lines,
    )


def _lines(comment: Comment, layout: Layout) -> range:
    if not comment.is_alone:
        return _line_or_statement(comment, layout)
    if comment.in_brackets:
        others = {other.line for other in layout.comments if other.is_alone}
        line = comment.line + 1
        while line in others:
            line += 1
        return range(line, line + 1)
    following = layout.next_statement(comment.line)
    return range(following[0], following[1] + 1) if following else range(0)


def _line_or_statement(comment: Comment, layout: Layout) -> range:
    statement = layout.statement_at(comment.line)
    if statement and comment.line in (statement.first, statement.last):
        return range(statement.first, statement.last + 1)
    return range(comment.line, comment.line + 1)


def _finding(source: str, suppression: Suppression, path: str, why: str, fix: Fix | None) -> Finding:
    comment = suppression.comment
    column = comment.column + suppression.start - comment.start
    start = len(source[: suppression.start].encode("utf-8", "surrogatepass"))
    return Finding(
        code=UNUSED,
        path=path,
        span=Span(
            start=start,
            end=start + len(suppression.text.encode("utf-8", "surrogatepass")),
            line=comment.line,
            column=column + 1,
            end_line=comment.line,
            end_column=column + 1 + len(suppression.text),
        ),
        message=f"this comment suppresses nothing; {why}",
        severity=Severity.WARNING,
        fix=fix,
    )


def _removal(source: str, suppression: Suppression, idle: Sequence[tuple[str, int, int]]) -> Fix:
    if len(idle) == len(suppression.codes):
        start, end = _whole(source, suppression)
        edit = _edit(source, start, end)
        return Fix(message="remove the comment", edits=(edit,), safe=True)
    codes = suppression.codes
    edits = []
    for index, item in enumerate(codes):
        if item not in idle:
            continue
        # With the comma before it; the first codes go with the comma after them.
        kept_before = any(other not in idle for other in codes[:index])
        start = codes[index - 1][2] if kept_before else item[1]
        end = item[2] if kept_before else codes[index + 1][1]
        edits.append(_edit(source, start, end))
    return Fix(message=f"remove {', '.join(code for code, _, _ in idle)}", edits=tuple(edits), safe=True)


def _whole(source: str, suppression: Suppression) -> tuple[int, int]:
    """The characters to take out: the line if nothing else stands on it, else the directive and blanks before it."""
    start, end = suppression.start, suppression.end
    comment = suppression.comment
    is_last = end == comment.start + len(comment.text.rstrip())
    if start > comment.start:
        return (len(source[:start].rstrip(" \t")) if is_last else start), end
    if not is_last:
        after = re.compile(r"[ \t]*").match(source, end)
        return start, after.end() if after else end
    end = comment.start + len(comment.text)
    if not comment.is_alone:
        return len(source[:start].rstrip(" \t")), end
    start = comment.start - comment.column
    ending = re.compile(r"\r\n|\r|\n").match(source, end)
    return start, ending.end() if ending else end


def _edit(source: str, start: int, end: int) -> Edit:
    before = len(source[:start].encode("utf-8", "surrogatepass"))
    return Edit(start=before, end=before + len(source[start:end].encode("utf-8", "surrogatepass")), text="")
