"""Parses one text, lets the rules look at it, and turns what they report into findings."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

import libcst as cst

from shapeguard.core.finding import Finding
from shapeguard.lint.flow.facts import Facts
from shapeguard.lint.flow.sketch import sketch
from shapeguard.lint.flow.spans import Places
from shapeguard.lint.rule import Match, Rule
from shapeguard.lint.visit import Context, SourceError

_TOO_DEEP = "nested too deeply to be checked"
_BRACKETS = 200
# A run of words and operators, each of which may open one more level; atomic, so that it takes no step back.
_CHAIN = re.compile(r"(?:(?>\w+|[-+~*/%@&|^<>=!.,:\[\](){}])(?>[ \t]*)){4000}")


def check(
    source: str, *, rules: Sequence[type[Rule]], context: Context, tree: ast.Module | None = None
) -> list[Finding]:
    """Give what the rules report, in the order of the text; the tree is Python's own, where it has one."""
    try:
        drawn = sketch(tree, source) if tree is not None and rules else None
        if drawn is not None:
            rules = list({match.rule for match in _matches(Facts(*drawn), rules, context)})
            if not rules:
                return []
        module = parse(source, is_python=tree is not None)
        matches = _matches(Facts(module), rules, context)
        return _findings(module, source, matches, context) if matches else []
    except RecursionError:
        raise SourceError(_TOO_DEEP) from None


def parse(source: str, *, is_python: bool = False) -> cst.Module:
    """Parse the text; `SourceError` says where it does not. What Python has parsed is known not to be too deep."""
    if not is_python:
        _refuse_depth(source)
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise SourceError(error.message, error.raw_line) from None
    except (RecursionError, cst.CSTValidationError, ValueError, MemoryError) as error:
        raise SourceError(f"cannot be parsed: {type(error).__name__}") from None


def _refuse_depth(source: str) -> None:
    """Refuse what nests too deeply: libcst's parser has no limit, and takes the process down with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (RecursionError, MemoryError):
        raise SourceError(_TOO_DEEP) from None
    except ValueError as error:
        raise SourceError(str(error)) from None
    except SyntaxError as error:
        # Perhaps the syntax of a newer Python. What Python itself found too deep is not.
        if "too many" in error.msg or _CHAIN.search(source) or _depth(source) > _BRACKETS:
            raise SourceError(_TOO_DEEP, error.lineno or 0) from None


def _depth(source: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\](){}]", source):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


def _matches(flow: Facts, rules: Sequence[type[Rule]], context: Context) -> list[Match]:
    active = [rule(flow, context) for rule in rules if context.neuron or not rule.neuron_only]
    for call in flow.calls:
        for rule in active:
            rule.visit_Call(call)
    for rule in active:
        rule.visit_Module()
    return [match for rule in active for match in rule.matches]


def _findings(module: cst.Module, source: str, matches: Sequence[Match], context: Context) -> list[Finding]:
    wanted = [match.node for match in matches]
    wanted += [node for match in matches if match.draft is not None for node in match.draft.nodes()]
    places = Places(module, source, wanted)
    found = [
        Finding(
            code=match.rule.code,
            path=context.path,
            span=places.span(match.node),
            message=match.message,
            severity=match.severity,
            fix=match.draft.fix(places) if match.draft is not None else None,
        )
        for match in matches
    ]
    return sorted(found, key=lambda finding: (finding.span.start, finding.code, finding.span.end))
