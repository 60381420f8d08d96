"""A quick tree in libcst's classes, made from Python's own: enough for the rules to find nothing in.

libcst keeps every blank and comma and takes ten times as long to parse as Python does. So rules look at a sketch first,
and only a file in which they find something is parsed in full, for the places and the fixes. A sketch holds just the
fields that the flow reads; no text can be written from it. What it does not know (`match`, newer syntax) has no sketch.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from shapeguard.lint.flow import sketch_parts as parts


class UnknownSyntaxError(Exception):
    """A node that has no sketch."""


class Sketch:
    """Makes the sketch of one file, and remembers where its expressions stand."""

    def __init__(self, source: str) -> None:
        self._lines = source.encode("utf-8", "surrogatepass").splitlines(keepends=True) if source else []
        self._nodes: dict[cst.CSTNode, ast.expr] = {}

    def module(self, tree: ast.Module) -> cst.Module:
        """Give the sketch of the whole file."""
        made: cst.Module = parts.module(self._statements(tree.body))
        return made

    def source_of(self, node: cst.CSTNode) -> str:
        """Give the text of an expression, without the parentheses around it."""
        place = self._nodes.get(node)
        if place is None or place.end_lineno is None or place.end_col_offset is None:
            return node.value if isinstance(node, cst.Name) else ""
        first, last = place.lineno - 1, place.end_lineno - 1
        lines = self._lines[first : last + 1]
        lines[-1] = lines[-1][: place.end_col_offset]
        lines[0] = lines[0][place.col_offset :]
        return b"".join(lines).decode("utf-8", "replace")

    def expression(self, node: ast.expr) -> Any:
        """Give the sketch of an expression."""
        maker = _EXPRESSIONS.get(type(node))
        if maker is None:
            raise UnknownSyntaxError(type(node).__name__)
        made = maker(self, node)
        self._nodes[made] = node
        return made

    def maybe(self, node: ast.expr | None) -> Any:
        """Give the sketch of an expression that may be missing."""
        return None if node is None else self.expression(node)

    def all(self, nodes: Iterable[ast.expr]) -> list[Any]:
        """Give the sketches of expressions."""
        return [self.expression(node) for node in nodes]

    def elements(self, nodes: Iterable[ast.expr]) -> list[Any]:
        """Give the items of a list."""
        starred, element = parts.starred, parts.element
        return [
            starred(self.expression(node.value)) if isinstance(node, ast.Starred) else element(self.expression(node))
            for node in nodes
        ]

    def arguments(self, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[Any]:
        """Give positional and named arguments in the order of the source."""
        found = [
            (node, parts.arg(self.expression(node.value), None, "*"))
            if isinstance(node, ast.Starred)
            else (node, parts.arg(self.expression(node), None, ""))
            for node in args
        ]
        for word in keywords:
            name = parts.name(word.arg) if word.arg is not None else None
            found.append((word.value, parts.arg(self.expression(word.value), name, "" if name is not None else "**")))
        if args and keywords and isinstance(args[-1], ast.Starred):
            found.sort(key=lambda pair: (pair[0].lineno, pair[0].col_offset))
        return [arg for _, arg in found]

    def parameters(self, args: ast.arguments) -> Any:
        """Give the parameters of a function."""
        plain = [*args.posonlyargs, *args.args]
        defaults = [*([None] * (len(plain) - len(args.defaults))), *args.defaults]
        made = [self._param(arg, default) for arg, default in zip(plain, defaults, strict=True)]
        named = [self._param(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        star = self._param(args.vararg, None, "*") if args.vararg is not None else parts.NONE
        rest = self._param(args.kwarg, None, "**") if args.kwarg is not None else None
        cut = len(args.posonlyargs)
        return parts.parameters(made[cut:], star, named, rest, made[:cut])

    def _param(self, arg: ast.arg, default: ast.expr | None, star: str = "") -> Any:
        annotation = parts.annotation(self.expression(arg.annotation)) if arg.annotation is not None else None
        return parts.param(parts.name(arg.arg), annotation, self.maybe(default), star)

    def loops(self, generators: Sequence[ast.comprehension]) -> Any:
        """Give the loops of a comprehension."""
        inner = None
        for each in reversed(generators):
            ifs = [parts.comp_if(self.expression(test)) for test in each.ifs]
            inner = parts.comp_for(self.expression(each.target), self.expression(each.iter), ifs, inner)
        return inner

    def _statements(self, body: Sequence[ast.stmt]) -> list[Any]:
        return [self.statement(each) for each in body]

    def statement(self, node: ast.stmt) -> Any:
        """Give the sketch of a statement."""
        maker = _STATEMENTS.get(type(node))
        if maker is None:
            raise UnknownSyntaxError(type(node).__name__)
        made = maker(self, node)
        return made if type(node) in _COMPOUND else parts.line([made])

    def body(self, body: Sequence[ast.stmt], line: int | None) -> Any:
        """Give a block; on the line of its header it is a suite."""
        if body[0].lineno == line:
            return parts.suite([self.statement(each).body[0] for each in body])
        return parts.block(self._statements(body))

    def orelse(self, body: Sequence[ast.stmt], line: int | None = None) -> Any:
        """Give the `else` of a loop or a `try`."""
        return parts.else_(self.body(body, line)) if body else None


def sketch(tree: ast.Module, source: str) -> tuple[cst.Module, Sketch] | None:
    """Give the sketch of a file; None where something in it has none."""
    made = Sketch(source)
    try:
        return made.module(tree), made
    except UnknownSyntaxError:
        return None


_Maker = Callable[[Sketch, Any], Any]


def _constant(sketch: Sketch, node: ast.Constant) -> Any:
    value = node.value
    if isinstance(value, (str, bytes)):
        return parts.string(repr(value))
    if value is None or isinstance(value, bool):
        return parts.name(repr(value))
    if isinstance(value, int):
        return cst.Integer(str(value)) if value < _LONG else cst.Ellipsis()
    return cst.Float(repr(value)) if isinstance(value, float) and value < math.inf else cst.Ellipsis()


def _compared(sketch: Sketch, node: ast.Compare) -> Any:
    pairs = zip(node.ops, node.comparators, strict=True)
    targets = [parts.target(parts.OPERATORS[type(op)], sketch.expression(right)) for op, right in pairs]
    return parts.comparison(sketch.expression(node.left), targets)


def _joined(sketch: Sketch, node: ast.BoolOp) -> Any:
    made, *rest = sketch.all(node.values)
    for right in rest:
        made = parts.boolean(made, parts.OPERATORS[type(node.op)], right)
    return made


def _formatted(sketch: Sketch, node: ast.JoinedStr) -> Any:
    pieces = [
        parts.formatted_part(sketch.expression(each.value))
        if isinstance(each, ast.FormattedValue)
        else parts.formatted_text(str(getattr(each, "value", "")))
        for each in node.values
    ]
    return parts.formatted(pieces)


def _dict(sketch: Sketch, node: ast.Dict) -> Any:
    return parts.dict_(
        [
            parts.dict_element(sketch.expression(key), sketch.expression(value))
            if key is not None
            else _double_starred(sketch.expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
    )


_double_starred = parts.maker(cst.StarredDictElement, "value")


def _subscript(sketch: Sketch, node: ast.Subscript) -> Any:
    pieces = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return parts.subscript(sketch.expression(node.value), [parts.subscript_element(_slice(sketch, p)) for p in pieces])


def _slice(sketch: Sketch, node: ast.expr) -> Any:
    if isinstance(node, ast.Slice):
        return parts.slice(sketch.maybe(node.lower), sketch.maybe(node.upper), sketch.maybe(node.step))
    return parts.index(sketch.expression(node.value if isinstance(node, ast.Starred) else node))


_LONG = 10**18
_EXPRESSIONS: dict[type[ast.AST], _Maker] = {
    ast.Constant: _constant,
    ast.Name: lambda s, n: parts.name(n.id),
    ast.Attribute: lambda s, n: parts.attribute(s.expression(n.value), parts.name(n.attr)),
    ast.Call: lambda s, n: parts.call(s.expression(n.func), s.arguments(n.args, n.keywords)),
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.BinOp: lambda s, n: parts.binary(s.expression(n.left), parts.OPERATORS[type(n.op)], s.expression(n.right)),
    ast.UnaryOp: lambda s, n: parts.unary(parts.OPERATORS[type(n.op)], s.expression(n.operand)),
    ast.IfExp: lambda s, n: parts.conditional(s.expression(n.test), s.expression(n.body), s.expression(n.orelse)),
    ast.JoinedStr: _formatted,
    ast.Dict: _dict,
    ast.List: lambda s, n: parts.list_(s.elements(n.elts)),
    ast.Tuple: lambda s, n: parts.tuple_(s.elements(n.elts)),
    ast.Set: lambda s, n: parts.set_(s.elements(n.elts)),
    ast.ListComp: lambda s, n: parts.list_comp(s.expression(n.elt), s.loops(n.generators)),
    ast.SetComp: lambda s, n: parts.set_comp(s.expression(n.elt), s.loops(n.generators)),
    ast.GeneratorExp: lambda s, n: parts.generator(s.expression(n.elt), s.loops(n.generators)),
    ast.DictComp: lambda s, n: parts.dict_comp(s.expression(n.key), s.expression(n.value), s.loops(n.generators)),
    ast.Subscript: _subscript,
    ast.Lambda: lambda s, n: parts.lambda_(s.parameters(n.args), s.expression(n.body)),
    ast.Await: lambda s, n: parts.awaited(s.expression(n.value)),
    ast.Yield: lambda s, n: parts.yield_(s.maybe(n.value)),
    ast.YieldFrom: lambda s, n: parts.yield_(parts.from_(s.expression(n.value))),
    ast.NamedExpr: lambda s, n: parts.named(s.expression(n.target), s.expression(n.value)),
}


def _function(sketch: Sketch, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
    if getattr(node, "type_params", None):
        raise UnknownSyntaxError("type parameters")
    returns = parts.annotation(sketch.expression(node.returns)) if node.returns is not None else None
    decorators = [parts.decorator(sketch.expression(each)) for each in node.decorator_list]
    body = sketch.body(node.body, node.lineno)
    return parts.function(parts.name(node.name), sketch.parameters(node.args), body, decorators, returns)


def _class(sketch: Sketch, node: ast.ClassDef) -> Any:
    if getattr(node, "type_params", None):
        raise UnknownSyntaxError("type parameters")
    bases, keywords = sketch.arguments(node.bases, []), sketch.arguments([], node.keywords)
    decorators = [parts.decorator(sketch.expression(each)) for each in node.decorator_list]
    return parts.class_(parts.name(node.name), sketch.body(node.body, node.lineno), bases, keywords, decorators)


def _if(sketch: Sketch, node: ast.If) -> Any:
    test, body = sketch.expression(node.test), sketch.body(node.body, node.test.end_lineno)
    first = node.orelse[0] if node.orelse else None
    is_elif = len(node.orelse) == 1 and isinstance(first, ast.If) and first.col_offset == node.col_offset
    return parts.if_(test, body, _if(sketch, first) if is_elif else sketch.orelse(node.orelse))  # type: ignore[arg-type]


def _for(sketch: Sketch, node: ast.For | ast.AsyncFor) -> Any:
    body = sketch.body(node.body, node.iter.end_lineno)
    return parts.for_(sketch.expression(node.target), sketch.expression(node.iter), body, sketch.orelse(node.orelse))


def _with(sketch: Sketch, node: ast.With | ast.AsyncWith) -> Any:
    items = [
        parts.with_item(
            sketch.expression(each.context_expr),
            parts.asname(sketch.expression(each.optional_vars)) if each.optional_vars is not None else None,
        )
        for each in node.items
    ]
    return parts.with_(items, sketch.body(node.body, node.lineno))


def _try(sketch: Sketch, node: ast.Try) -> Any:
    handlers = [
        parts.except_(
            sketch.body(each.body, each.lineno),
            sketch.maybe(each.type),
            parts.asname(parts.name(each.name)) if each.name is not None else None,
        )
        for each in node.handlers
    ]
    final = parts.finally_(sketch.body(node.finalbody, None)) if node.finalbody else None
    return parts.try_(sketch.body(node.body, node.lineno), handlers, sketch.orelse(node.orelse), final)


def _assigned(sketch: Sketch, node: ast.Assign) -> Any:
    return parts.assign([parts.assign_target(each) for each in sketch.all(node.targets)], sketch.expression(node.value))


def _annotated(sketch: Sketch, node: ast.AnnAssign) -> Any:
    annotation = parts.annotation(sketch.expression(node.annotation))
    return parts.annotated(sketch.expression(node.target), annotation, sketch.maybe(node.value))


def _augmented(sketch: Sketch, node: ast.AugAssign) -> Any:
    operator = parts.IN_PLACE.get(type(node.op), parts.OTHER_IN_PLACE)
    return parts.augmented(sketch.expression(node.target), operator, sketch.expression(node.value))


def _import_from(sketch: Sketch, node: ast.ImportFrom) -> Any:
    names = cst.ImportStar() if node.names[0].name == "*" else [_alias(each) for each in node.names]
    module = _dotted(node.module) if node.module is not None else None
    return parts.import_from(module, names, [parts.dot() for _ in range(node.level)])


def _alias(node: ast.alias) -> Any:
    return parts.alias(_dotted(node.name), parts.asname(parts.name(node.asname)) if node.asname is not None else None)


def _dotted(text: str) -> Any:
    first, *rest = text.split(".")
    made = parts.name(first)
    for each in rest:
        made = parts.attribute(made, parts.name(each))
    return made


def _deleted(sketch: Sketch, node: ast.Delete) -> Any:
    whole = len(node.targets) > 1
    return parts.delete(parts.tuple_(sketch.elements(node.targets)) if whole else sketch.expression(node.targets[0]))


def _raised(sketch: Sketch, node: ast.Raise) -> Any:
    return parts.raise_(sketch.maybe(node.exc), parts.from_(sketch.expression(node.cause)) if node.cause else None)


_STATEMENTS: dict[type[ast.AST], _Maker] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: lambda s, n: parts.while_(s.expression(n.test), s.body(n.body, n.test.end_lineno), s.orelse(n.orelse)),
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Assign: _assigned,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Import: lambda s, n: parts.import_([_alias(each) for each in n.names]),
    ast.ImportFrom: _import_from,
    ast.Delete: _deleted,
    ast.Raise: _raised,
    ast.Assert: lambda s, n: parts.assert_(s.expression(n.test), s.maybe(n.msg)),
    ast.Return: lambda s, n: parts.return_(s.maybe(n.value)),
    ast.Expr: lambda s, n: parts.expr(s.expression(n.value)),
    ast.Global: lambda s, n: parts.global_([parts.name_item(parts.name(each)) for each in n.names]),
    ast.Nonlocal: lambda s, n: parts.nonlocal_([parts.name_item(parts.name(each)) for each in n.names]),
    ast.Pass: lambda s, n: cst.Pass(),
    ast.Break: lambda s, n: cst.Break(),
    ast.Continue: lambda s, n: cst.Continue(),
}
_COMPOUND = frozenset(kind for kind in _STATEMENTS if "body" in kind._fields)
