"""Makers of the nodes of a sketch: only the fields that the flow reads are set."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import libcst as cst

NONE = cst.MaybeSentinel.DEFAULT
_new = object.__new__


def maker(kind: type[cst.CSTNode], *names: str, **constants: object) -> Callable[..., Any]:
    """Give a function that makes a node of these fields only: libcst's own constructors check and fill all."""
    setters = [kind.__dict__[name].__set__ for name in names]
    rest = [(kind.__dict__[name].__set__, value) for name, value in constants.items()]

    def make(*values: object) -> Any:
        node = _new(kind)
        for write, value in zip(setters, values, strict=True):
            write(node, value)
        for write, value in rest:
            write(node, value)
        return node

    return make


arg = maker(cst.Arg, "value", "keyword", "star")
asname = maker(cst.AsName, "name")
annotation = maker(cst.Annotation, "annotation")
attribute = maker(cst.Attribute, "value", "attr")
binary = maker(cst.BinaryOperation, "left", "operator", "right")
block = maker(cst.IndentedBlock, "body")
boolean = maker(cst.BooleanOperation, "left", "operator", "right")
comp_for = maker(cst.CompFor, "target", "iter", "ifs", "inner_for_in")
comp_if = maker(cst.CompIf, "test")
comparison = maker(cst.Comparison, "left", "comparisons")
decorator = maker(cst.Decorator, "decorator")
element = maker(cst.Element, "value")
else_ = maker(cst.Else, "body")
index = maker(cst.Index, "value", star=None)
line = maker(cst.SimpleStatementLine, "body")
name = maker(cst.Name, "value", lpar=())
param = maker(cst.Param, "name", "annotation", "default", "star")
parameters = maker(
    cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params", posonly_ind=NONE
)
slice = maker(cst.Slice, "lower", "upper", "step", first_colon=NONE, second_colon=NONE)
starred = maker(cst.StarredElement, "value")
string = maker(cst.SimpleString, "value")
suite = maker(cst.SimpleStatementSuite, "body", leading_whitespace=None)
target = maker(cst.ComparisonTarget, "operator", "comparator")
unary = maker(cst.UnaryOperation, "operator", "expression")

alias = maker(cst.ImportAlias, "name", "asname")
assert_ = maker(cst.Assert, "test", "msg")
assign = maker(cst.Assign, "targets", "value")
assign_target = maker(cst.AssignTarget, "target")
annotated = maker(cst.AnnAssign, "target", "annotation", "value")
augmented = maker(cst.AugAssign, "target", "operator", "value")
awaited = maker(cst.Await, "expression")
call = maker(cst.Call, "func", "args")
class_ = maker(cst.ClassDef, "name", "body", "bases", "keywords", "decorators", type_parameters=None)
conditional = maker(cst.IfExp, "test", "body", "orelse")
delete = maker(cst.Del, "target")
dict_ = maker(cst.Dict, "elements")
dict_comp = maker(cst.DictComp, "key", "value", "for_in")
dict_element = maker(cst.DictElement, "key", "value")
dot = maker(cst.Dot)
except_ = maker(cst.ExceptHandler, "body", "type", "name")
expr = maker(cst.Expr, "value")
finally_ = maker(cst.Finally, "body")
for_ = maker(cst.For, "target", "iter", "body", "orelse")
formatted = maker(cst.FormattedString, "parts", start='f"', end='"')
formatted_part = maker(cst.FormattedStringExpression, "expression", conversion=None, format_spec=None)
formatted_text = maker(cst.FormattedStringText, "value")
from_ = maker(cst.From, "item")
function = maker(cst.FunctionDef, "name", "params", "body", "decorators", "returns", type_parameters=None)
generator = maker(cst.GeneratorExp, "elt", "for_in", lpar=())
global_ = maker(cst.Global, "names")
if_ = maker(cst.If, "test", "body", "orelse")
import_ = maker(cst.Import, "names")
import_from = maker(cst.ImportFrom, "module", "names", "relative")
lambda_ = maker(cst.Lambda, "params", "body", colon=None)
list_ = maker(cst.List, "elements")
list_comp = maker(cst.ListComp, "elt", "for_in")
name_item = maker(cst.NameItem, "name")
named = maker(cst.NamedExpr, "target", "value")
nonlocal_ = maker(cst.Nonlocal, "names")
raise_ = maker(cst.Raise, "exc", "cause")
return_ = maker(cst.Return, "value")
set_ = maker(cst.Set, "elements")
set_comp = maker(cst.SetComp, "elt", "for_in")
subscript = maker(cst.Subscript, "value", "slice")
subscript_element = maker(cst.SubscriptElement, "slice")
try_ = maker(cst.Try, "body", "handlers", "orelse", "finalbody")
tuple_ = maker(cst.Tuple, "elements", lpar=())
while_ = maker(cst.While, "test", "body", "orelse")
with_ = maker(cst.With, "items", "body")
with_item = maker(cst.WithItem, "item", "asname")
yield_ = maker(cst.Yield, "value")
module = maker(
    cst.Module, "body", encoding="utf-8", default_indent="    ", default_newline="\n", has_trailing_newline=True
)

OPERATORS: dict[type[ast.AST], cst.CSTNode] = {
    getattr(ast, there): getattr(cst, here)()
    for there, here in {
        "And": "And", "Or": "Or", "Not": "Not", "USub": "Minus", "UAdd": "Plus", "Invert": "BitInvert",
        "Add": "Add", "Sub": "Subtract", "Mult": "Multiply", "Div": "Divide", "FloorDiv": "FloorDivide",
        "Mod": "Modulo", "Pow": "Power", "LShift": "LeftShift", "RShift": "RightShift", "BitOr": "BitOr",
        "BitAnd": "BitAnd",
        "BitXor": "BitXor", "MatMult": "MatrixMultiply", "Eq": "Equal", "NotEq": "NotEqual", "Lt": "LessThan",
        "LtE": "LessThanEqual", "Gt": "GreaterThan", "GtE": "GreaterThanEqual", "Is": "Is", "IsNot": "IsNot",
        "In": "In", "NotIn": "NotIn",
    }.items()
}  # fmt: skip
IN_PLACE: dict[type[ast.AST], cst.CSTNode] = {ast.BitOr: cst.BitOrAssign()}
OTHER_IN_PLACE = cst.AddAssign()
