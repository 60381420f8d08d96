"""What rules ask about the code: values of names, calls with their arguments, kinds of objects.

Answers are what may be, found without running anything; where something cannot be seen the answer says so, and a rule
that needs it stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from shapeguard.lint.flow import graphs, guards, objects, rows, sites
from shapeguard.lint.flow.calls import Invocation, invocations
from shapeguard.lint.flow.generation import Generation, generations
from shapeguard.lint.flow.index import Index
from shapeguard.lint.flow.kinds import kinds
from shapeguard.lint.flow.mapping import Mapping, mapping
from shapeguard.lint.flow.reach import ancestors, before, reaching
from shapeguard.lint.flow.scope import Binding, Mutation, Scope, path_of
from shapeguard.lint.flow.sketch import Sketch
from shapeguard.lint.flow.values import Value, evaluate, method

_DEPTH = 40


class Flow:
    """One parsed file."""

    def __init__(self, module: cst.Module, sketch: Sketch | None = None) -> None:
        self.index = Index(module)
        self._sketch = sketch
        self._values: dict[cst.CSTNode, list[Value]] = {}
        self._kinds: dict[cst.CSTNode, frozenset[str]] = {}
        self._mappings: dict[cst.CSTNode, Mapping] = {}
        self._never: dict[cst.CSTNode, bool] = {}
        self._attributes: dict[Scope, Scope] = {}
        self.varying: dict[cst.CSTNode, bool] = {}
        """A memo of `repeats.varies`."""
        self._depth = 0
        self._sites: dict[cst.CSTNode, list[Invocation]] | None = None

    @cached_property
    def calls(self) -> list[Invocation]:
        """Every call of the file, with those that partials, threads and executors will make."""
        return [made for call in self.index.calls for made in invocations(self, call)]

    @cached_property
    def binds_arguments(self) -> bool:
        """Whether the file makes any `partial`."""
        return any(method(call) == "partial" for call in self.index.calls)

    @cached_property
    def generations(self) -> list[Generation]:
        """Every call of `generate()` of the file."""
        return generations(self)

    @cached_property
    def encodings(self) -> list[Invocation]:
        """The calls that turn text into tokens, but for the prompts of a `generate()`."""
        return rows.encodings(self)

    @cached_property
    def imported(self) -> frozenset[str]:
        """The qualified names that the file imports anywhere."""
        scopes = self.index.inner.values()
        found = [b for scope in scopes for bindings in scope.bindings.values() for b in bindings if b.how == "import"]
        return frozenset(b.name for b in found) | frozenset(self.index.stars)

    @cached_property
    def words(self) -> frozenset[str]:
        """The names and texts of the file, comments and docstrings left out."""
        found = {node.value for node in self.index.order if isinstance(node, cst.Name)}
        for node in self.index.order:
            if isinstance(node, cst.SimpleString) and not isinstance(self.index.parent[node], cst.Expr):
                found.add(node.value)
        return frozenset(found)

    def assigned(self, last: str, *, of: str = "") -> list[cst.BaseExpression]:
        """Give what the file assigns to `….last` anywhere; with `of`, only on what a class called `…of` made."""
        found = []
        for scope in self.index.inner.values():
            for path, bindings in scope.bindings.items():
                if path.endswith(f".{last}"):
                    values = [binding.value for binding in bindings if binding.value is not None]
                    found += [value for value in values if not of or self._is_set_on(value, of)]
        return found

    def _is_set_on(self, value: cst.BaseExpression, made: str) -> bool:
        statement = self.index.parent.get(value)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        owners = self.values(target.value) if isinstance(target, cst.Attribute) else []
        calls = [owner.node for owner in owners if isinstance(owner.node, cst.Call)]
        return any(name.endswith(made) for call in calls for name in self.names(call.func))

    def sites_of(self, definition: cst.CSTNode) -> list[Invocation]:
        """Give the calls in the file of a function; those of its class where it is a constructor."""
        if isinstance(definition, cst.FunctionDef) and definition.name.value == "__init__":
            definition = objects.owner(self, definition) or definition
        if self._sites is None:
            # What asks for the calls while they are looked for finds none.
            self._sites = {}
            self._sites = sites.find(self)
            # What was found until now leaves out the arguments of functions.
            for memo in (self._values, self._kinds, self._mappings, self._never):
                memo.clear()
            self.__dict__.pop("calls", None)
        return self._sites.get(definition, [])

    def is_passed(self, param: cst.Param) -> bool:
        """Whether some call in the file passes the parameter."""
        return bool(objects.passed(self, param))

    def values(self, node: cst.CSTNode) -> list[Value]:
        """Give what the expression may be, each with the place it comes from."""
        if node in self._values:
            return self._values[node]
        if self._depth > _DEPTH:
            return [Value("unknown", node)]
        # An expression that leads back to itself adds nothing of its own.
        self._values[node] = []
        self._depth += 1
        found = list(dict.fromkeys(evaluate(self, node)))
        self._depth -= 1
        self._values[node] = found
        return found

    def constants(self, node: cst.CSTNode | None) -> list[object]:
        """Give the constants that the expression may be."""
        return [v.constant for v in self.values(node) if v.kind == "constant"] if node is not None else []

    def only(self, node: cst.CSTNode | None) -> object:
        """Give the one constant that the expression is, or Ellipsis where it is not just one."""
        values = self.values(node) if node is not None else []
        constants = {repr(v.constant) for v in values}
        if len(constants) == 1 and all(v.kind == "constant" for v in values):
            return values[0].constant
        return ...

    def names(self, node: cst.CSTNode) -> set[str]:
        """Give the qualified names that the expression may be."""
        return {v.name for v in self.values(node) if v.kind == "global"}

    def kinds(self, node: cst.CSTNode) -> frozenset[str]:
        """Give what sorts of object the expression may be: "decoder", "tokenizer", …"""
        if node not in self._kinds:
            self._kinds[node] = frozenset()
            self._kinds[node] = kinds(self, node)
        return self._kinds[node]

    def mapping(self, node: cst.CSTNode) -> Mapping:
        """Give the entries of a dict, and whether these are all."""
        if node not in self._mappings:
            self._mappings[node] = Mapping()
            self._mappings[node] = mapping(self, node)
        return self._mappings[node]

    def bindings(self, node: cst.CSTNode) -> list[Binding]:
        """Give the bindings of the name or path that may hold at this place."""
        path = path_of(node)
        for scope in self.scopes(node, path):
            if path in scope.bindings:
                found = reaching(self.index, scope.bindings[path], scope, node)
                return [binding for binding in found if not self.never_on_neuron(binding.node)]
        return []

    def is_bound(self, node: cst.CSTNode) -> bool:
        """Whether some scope around gives the name or path a value."""
        path = path_of(node)
        return any(path in scope.bindings for scope in self.scopes(node, path))

    def mutations(self, node: cst.CSTNode) -> list[Mutation]:
        """Give the changes in place of the object under the path that may have happened at this place."""
        path = path_of(node)
        for scope in self.scopes(node, path):
            if path.split(".")[0] in scope.bindings or path in scope.mutations:
                found = before(self.index, scope.mutations.get(path, []), scope, node)
                return [mutation for mutation in found if not self.never_on_neuron(mutation.node)]
        return []

    def scopes(self, node: cst.CSTNode, path: str) -> Iterator[Scope]:
        """Give the scopes that the path is looked up in; `self.x` also in all methods of the class."""
        scope: Scope | None = self.index.scope.get(node, self.index.top)
        first = scope
        if path.startswith(("self.", "cls.")) and first is not None:
            yield from self._class_scopes(first)
        while scope is not None:
            if scope.kind != "class" or scope is first:
                yield scope
            scope = scope.outer

    def _class_scopes(self, scope: Scope) -> Iterator[Scope]:
        owner = scope.owner()
        function = scope.function()
        if function is not None:
            yield function
        if owner is not None:
            yield self.attributes(owner)

    def attributes(self, owner: Scope) -> Scope:
        """Give the scope that holds what a class body and its methods assign, all under `self.…`."""
        if owner not in self._attributes:
            self._attributes[owner] = objects.attributes(self, owner)
        return self._attributes[owner]

    def is_within(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether the node is part of the other."""
        return any(parent is outer for parent, _ in self.ancestors(node))

    @cached_property
    def decorators(self) -> list[cst.BaseExpression]:
        """The decorators of the file that are not calls."""
        found = [node.decorator for node in self.index.order if isinstance(node, cst.Decorator)]
        return [decorator for decorator in found if not isinstance(decorator, cst.Call)]

    @cached_property
    def compiled(self) -> frozenset[cst.CSTNode]:
        """The functions of the file that `torch.compile(f)` is called on."""
        return graphs.compiled(self)

    def never_on_neuron(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in code that plainly never runs on Neuron."""
        if node not in self._never:
            self._never[node] = False
            self._never[node] = guards.never_on_neuron(self, node)
        return self._never[node]

    def ancestors(self, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        """Give (parent, child) pairs from the node up to the module."""
        return ancestors(self.index, node)

    def source_of(self, node: cst.CSTNode) -> str:
        """Give the text of a small expression."""
        if self._sketch is not None:
            return self._sketch.source_of(node)
        return self.index.module.code_for_node(node)
