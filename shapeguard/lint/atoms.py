"""The atoms of Python's own tree: what a rule's `gate` asks for before libcst parses anything.

`name`       a name, attribute, keyword, imported name or short text; docstrings are too long to be one
`name()`     a call of it, but for `super().name()`
`.name`      the attribute without a call, as in `partial(model.generate)`
`a.name`     the attribute of a name or of an attribute `a`; `a:name` what `from a import name` imports
`*okeniz`    a name with this in it: some tokenizer; `*collat` alike: something that makes batches
`name=True`  a keyword, dict entry, default or assignment with a constant; the value as `repr` has it
`name='*'`   the same with any text; `name=CONST` with a name in capitals; `name=.X` with an attribute
`=name`      an assignment or keyword whose value is that name or attribute, or its import under another name
`class(X`    a class that inherits from `X`; `max(len` a `max(len(x) for x in y)` or what may be one
`{name`      a key of a dict; `[name` one that is set
`'text'`     a short text that may go somewhere: not one side of a comparison, nor a dtype
`torch:name` a name that is imported from torch, or reached through one that is; `_:name` through any other
`partial<f`  what a `partial` binds
`f(name`     a call of `f` with that keyword; `f(**` one that unpacks a dict which has a name of its own
`(name`      any call with that keyword; `(name=True` with that constant, `(name=` with anything else
`^torch`     the package is imported, by its full name
`*compiled`  what `torch.compile` gave is called by its name; `[~]` a subscript by what may be a mask
`+=1`        a number of the file's that is added to a name
`*forward`   a class with a `forward`; `@compile` a function under `compile`; `compile()` as any other call
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from shapeguard.lint.masks import Masks

# A text that is longer is no setting.
_SHORT = 40
_LEAVES = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "level", "kind", "type_comment", "is_async", "simple"})
_PARTS = ("okeniz", "collat")


class _Walk:
    """One walk over a tree."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        """The atoms so far."""
        self.names: set[str] = set()
        self.called: set[int] = set()
        self.assigned: set[str] = set()
        self.unpacked: list[tuple[str, str]] = []
        """(callee, name) of each `f(**name)`."""
        self.compiled: set[str] = set()
        self.run: set[str] = set()
        self.compared: set[int] = set()
        """Constants that go nowhere."""
        self.masks = Masks()
        self.chains: set[tuple[str, str]] = set()
        """First and last name of each attribute."""
        self.modules: dict[str, set[str]] = {}
        """Names that are imported, with the packages they come from."""

    def walk(self, tree: ast.Module) -> None:
        todo: list[ast.AST] = [tree]
        while todo:
            node = todo.pop()
            kind = type(node)
            giver = _GIVERS.get(kind)
            if giver is not None:
                giver(self, node)
            # By hand and without the leaves, since `ast.walk` takes four times as long.
            for name in _inner(kind):
                value = getattr(node, name, None)
                if type(value) is list:
                    todo += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST):
                    todo.append(value)
        self._afterwards()

    def _afterwards(self) -> None:
        """What can be told when all of the tree has been seen."""
        for callee, name in self.unpacked:
            if name in self.assigned:
                self.found.add(f"{callee}(**")
        if self.compiled & self.run:
            self.found.add("*compiled")
        if self.masks.are_read:
            self.found.add("[~]")
        for first, last in self.chains:
            packages = self.modules.get(first, set())
            if not packages or first in self.assigned:
                packages = packages | {"_"}
            self.found.update(f"{package}:{last}" for package in packages)

    def attribute(self, node: Any) -> None:
        self._name(node.attr)
        self.chains.add((_root(node), node.attr))
        owner = _last(node.value)
        self.found.add(f"{owner}.{node.attr}")
        if "okeniz" in owner:
            self.found.add(f"*okeniz.{node.attr}")
        if id(node) not in self.called and not _is_super(node):
            self.found.add(f".{node.attr}")

    def name(self, node: Any) -> None:
        self._name(node.id)

    def call(self, node: Any) -> None:
        func = node.func
        last = _last(func)
        self.run.add(last)
        if isinstance(func, ast.Attribute):
            # The walk comes to a call before it comes to what is called.
            self.called.add(id(func))
            if last in ("update", "setdefault"):
                self.assigned.add(_last(func.value))
                self._default(node)
        if not _is_super(func):
            self.found.add(f"{last}()")
        self.masks.call(node, last)
        if last == "max" and node.args and _is_of_lengths(node.args[0]):
            self.found.add("max(len")
        if last == "partial" and node.args:
            self.found.add(f"partial<{_last(node.args[0])}")
        self._arguments(last, node)

    def _arguments(self, last: str, node: Any) -> None:
        for keyword in node.keywords:
            if keyword.arg is not None:
                self.found.add(f"{last}({keyword.arg}")
                self.found.add(f"({keyword.arg}")
                if "okeniz" in last:
                    self.found.add(f"*okeniz({keyword.arg}")
                constant = isinstance(keyword.value, ast.Constant)
                self.found.add(f"({keyword.arg}={keyword.value.value!r}" if constant else f"({keyword.arg}=")
            elif isinstance(keyword.value, ast.Name):
                self.unpacked.append((last, keyword.value.id))
            elif isinstance(keyword.value, ast.Attribute):
                self.unpacked.append((last, keyword.value.attr))
            elif isinstance(keyword.value, (ast.Dict, ast.Call, ast.BinOp, ast.IfExp, ast.Subscript, ast.BoolOp)):
                self.found.add(f"{last}(**")

    def keyword(self, node: Any) -> None:
        if node.arg is not None:
            self._goes(node.arg, node.value)
            self._name(node.arg)
            self._given(node.arg, node.value)

    def _goes(self, name: str, value: ast.expr | None) -> None:
        # "auto" is a word of dtypes too.
        if isinstance(value, ast.Constant) and "dtype" in name:
            self.compared.add(id(value))

    def constant(self, node: Any) -> None:
        if isinstance(node.value, str) and len(node.value) <= _SHORT:
            self.found.add(node.value)
            if id(node) not in self.compared:
                self.found.add(f"'{node.value}'")

    def compare(self, node: Any) -> None:
        self.masks.compare(node)
        for side in (node.left, *node.comparators):
            self.compared.update(map(id, side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else (side,)))

    def test(self, node: Any) -> None:
        self.masks.asks(node)

    def operation(self, node: Any) -> None:
        self.masks.operation(node)

    def dict(self, node: Any) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self.found.add(f"{{{key.value}")
                self._given(key.value, value)

    def function(self, node: Any) -> None:
        if any(_is_compile(decorator) for decorator in getattr(node, "decorator_list", ())):
            self.compiled.add(node.name)
            self.found.add("@compile")
        self._name(getattr(node, "name", ""))
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        pairs = [*zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True)]
        for arg, default in (*pairs, *zip(args.kwonlyargs, args.kw_defaults, strict=True)):
            self._goes(arg.arg, default)
            self._given(arg.arg, default)
        self.masks.made |= {arg.arg for arg in (*plain, *args.kwonlyargs)}

    def klass(self, node: Any) -> None:
        self._name(node.name)
        self.found.update(f"class({_last(base)}" for base in node.bases)
        if any(isinstance(each, ast.FunctionDef) and each.name == "forward" for each in node.body):
            self.found.add("*forward")

    def assign(self, node: Any) -> None:
        made = node.value is not None and _is_compile(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if made:
                self.compiled.add(_last(target))
            self.masks.assign(target, node.value)
            self._goes(_last(target), node.value)
            if isinstance(target, ast.Name):
                self.assigned.add(target.id)
                self._given(target.id, _field_default(node.value))
            elif isinstance(target, ast.Attribute):
                self.assigned.add(target.attr)
                self._given(target.attr, node.value)
            elif isinstance(target, ast.Subscript):
                self.assigned.add(_last(target.value))
                key = target.slice.value if isinstance(target.slice, ast.Constant) else None
                if isinstance(key, str):
                    self.found.add(f"[{key}")
                    self._given(key, node.value)

    def augment(self, node: Any) -> None:
        if isinstance(node.op, ast.Add) and isinstance(node.value, ast.Constant):
            self.found.add("+=1")

    def imports(self, node: Any) -> None:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                package = node.module.split(".")[0] if node.module and not node.level else "."
                self.modules.setdefault(alias.asname or alias.name, set()).add(package)
                if alias.asname is not None:
                    self.found.add(f"={alias.name}")
            if node.module and not node.level:
                self.found.update(node.module.split("."))
                root = node.module.split(".")[0]
                self.found.add(f"^{root}")
                self.found.update(f"{root}:{alias.name}" for alias in node.names)
        for alias in node.names:
            self.found.update(alias.name.split("."))
            if isinstance(node, ast.Import):
                root = alias.name.split(".")[0]
                self.modules.setdefault(alias.asname or root, set()).add(root)
                self.found.add(f"^{root}")

    def subscript(self, node: Any) -> None:
        self.masks.subscript(node)

    def _name(self, name: str) -> None:
        if name not in self.names:
            self.names.add(name)
            self.found.add(name)
            self.found.update(f"*{part}" for part in _PARTS if part in name)

    def _given(self, name: str, value: ast.expr | None) -> None:
        if isinstance(value, ast.Constant):
            self.found.add(f"{name}={value.value!r}")
            self.found.add(f"={value.value!r}")
            if isinstance(value.value, str):
                self.found.add(f"{name}='*'")
        elif isinstance(value, ast.Name):
            self.found.add(f"={value.id}")
            if value.id.isupper():
                self.found.add(f"{name}=CONST")
        elif isinstance(value, ast.Attribute):
            self.found.add(f"={value.attr}")
            self.found.add(f"{name}=.{value.attr}")

    def _default(self, node: ast.Call) -> None:
        """`d.setdefault("key", value)`."""
        if len(node.args) == 2 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            self.found.add(f"[{node.args[0].value}")
            self._given(node.args[0].value, node.args[1])


_fields: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: ()}


def _inner(kind: type[ast.AST]) -> tuple[str, ...]:
    """Give the fields that may hold code."""
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = tuple(name for name in kind._fields if name not in _LEAVES)
    return found


def atoms(tree: ast.Module) -> frozenset[str]:
    """Give the atoms of the tree."""
    walk = _Walk()
    walk.walk(tree)
    return frozenset(walk.found)


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_of_lengths(node: ast.expr) -> bool:
    """Lengths of rows, or a name that may be some."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Call):
        return _last(node.func) == "map"
    over = node.elt if isinstance(node, (ast.GeneratorExp, ast.ListComp)) else None
    return isinstance(over, (ast.Call, ast.Subscript))


def _field_default(node: Any) -> Any:
    """Give what `field(default=…)` of a dataclass stands for."""
    if isinstance(node, ast.Call) and _last(node.func) == "field":
        return next((each.value for each in node.keywords if each.arg == "default"), node)
    return node


def _is_compile(node: ast.expr) -> bool:
    """`compile`, `compile(...)` or `partial(compile, ...)`, of whatever module."""
    if isinstance(node, ast.Call):
        return _last(node.func) == "compile" or any(_last(arg) == "compile" for arg in node.args[:1])
    return _last(node) == "compile"


def _is_super(func: ast.expr) -> bool:
    inner = func.value if isinstance(func, ast.Attribute) else None
    return isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "super"


_GIVERS: dict[type, Callable[[_Walk, Any], None]] = {
    ast.Name: _Walk.name,
    ast.Attribute: _Walk.attribute,
    ast.Call: _Walk.call,
    ast.keyword: _Walk.keyword,
    ast.Constant: _Walk.constant,
    ast.Dict: _Walk.dict,
    ast.FunctionDef: _Walk.function,
    ast.AsyncFunctionDef: _Walk.function,
    ast.Lambda: _Walk.function,
    ast.ClassDef: _Walk.klass,
    ast.Assign: _Walk.assign,
    ast.AnnAssign: _Walk.assign,
    ast.NamedExpr: _Walk.assign,
    ast.AugAssign: _Walk.augment,
    ast.Import: _Walk.imports,
    ast.ImportFrom: _Walk.imports,
    ast.Subscript: _Walk.subscript,
    ast.Compare: _Walk.compare,
    ast.If: _Walk.test,
    ast.While: _Walk.test,
    ast.Assert: _Walk.test,
    ast.IfExp: _Walk.test,
    ast.BoolOp: _Walk.test,
    ast.comprehension: _Walk.test,
    ast.UnaryOp: _Walk.operation,
    ast.BinOp: _Walk.operation,
}
