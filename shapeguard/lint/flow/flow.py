"""What rules ask about the code: values of names, calls with their arguments, kinds of objects.

Answers are what may be, found without running anything; where something cannot be seen the answer says so, and a rule
that needs it stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from shapeguard.lint.flow import graphs, guards, objects, repeats, rows, sites
from shapeguard.lint.flow.calls import Invocation, invocations
from shapeguard.lint.flow.draft import Fixes, is_literal
from shapeguard.lint.flow.generation import Generation, generations
from shapeguard.lint.flow.index import Index
from shapeguard.lint.flow.kinds import kinds
from shapeguard.lint.flow.mapping import Mapping, mapping
from shapeguard.lint.flow.reach import ancestors, before, reaching
from shapeguard.lint.flow.scope import Binding, Mutation, Scope, path_of
from shapeguard.lint.flow.values import Value, evaluate

_DEPTH = 40


class Flow:
    """One parsed file."""

    def __init__(self, module: cst.Module) -> None:
        self.index = Index(module)
        self._values: dict[cst.CSTNode, list[Value]] = {}
        self._kinds: dict[cst.CSTNode, frozenset[str]] = {}
        self._mappings: dict[cst.CSTNode, Mapping] = {}
        self._never: dict[cst.CSTNode, bool] = {}
        self._attributes: dict[Scope, Scope] = {}
        self.fixes = Fixes()
        self._depth = 0
        self._sites: dict[cst.CSTNode, list[Invocation]] = {}
        self._sites = sites.find(self)
        # What was found before the calls of functions were known leaves out their arguments.
        for memo in (self._values, self._kinds, self._mappings, self._never):
            memo.clear()
        del self.calls

    @cached_property
    def calls(self) -> list[Invocation]:
        """Every call of the file, with those that partials, threads and executors will make."""
        return [made for call in self.index.calls for made in invocations(self, call)]

    @cached_property
    def generations(self) -> list[Generation]:
        """Every call of `generate()` of the file."""
        return generations(self)

    @cached_property
    def encodings(self) -> list[Invocation]:
        """The calls that turn text into tokens, but for the prompts of a `generate()`."""
        return rows.encodings(self)

    @cached_property
    def packs(self) -> bool:
        """Whether the file seems to cut a stream of tokens into blocks of one length."""
        return rows.packs(self)

    def padding(self, call: Invocation) -> str:
        """Give what a tokenizer's or collator's call pads to: "fixed", "longest", "none" or "unknown"."""
        return rows.padding(call)

    def is_tokenizer(self, call: Invocation) -> bool:
        """Whether the call turns text into tokens."""
        return rows.is_tokenizer(call)

    def collates(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in a function that makes batches, and does not pad them to a length again."""
        function = rows.collating(self, node)
        return function is not None and not rows.pads_again(self, function)

    def purpose(self, node: cst.CSTNode, *, wide: bool = False) -> str:
        """Give the words around a call that say what it is for; if wide, those of its class too."""
        return rows.target_name(self, node, wide=wide)

    @cached_property
    def imported(self) -> frozenset[str]:
        """The qualified names that the file imports anywhere."""
        scopes = self.index.inner.values()
        found = [b for scope in scopes for bindings in scope.bindings.values() for b in bindings if b.how == "import"]
        return frozenset(b.name for b in found) | frozenset(self.index.stars)

    def assigned(self, last: str) -> list[cst.BaseExpression]:
        """Give what the file assigns to `….last` anywhere."""
        found = []
        for scope in self.index.inner.values():
            for path, bindings in scope.bindings.items():
                if path.endswith(f".{last}"):
                    found += [binding.value for binding in bindings if binding.value is not None]
        return found

    def sites_of(self, definition: cst.CSTNode) -> list[Invocation]:
        """Give the calls in the file of a function; those of its class where it is a constructor."""
        if isinstance(definition, cst.FunctionDef) and definition.name.value == "__init__":
            definition = objects.owner(self, definition) or definition
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

    def serves(self, word: str) -> bool:
        """Whether the code of the file, comments and docstrings left out, holds the word."""
        return word in self._code

    @cached_property
    def _code(self) -> str:
        names = {node.value for node in self.index.order if isinstance(node, cst.Name)}
        texts = {
            node.value
            for node in self.index.order
            if isinstance(node, cst.SimpleString) and not isinstance(self.index.parent[node], cst.Expr)
        }
        return "\n".join(sorted(names | texts))

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether the expression has other values from call to call of its place."""
        return repeats.varies(self, node) and repeats.repeated(self, node)

    def is_repeated(self, node: cst.CSTNode) -> bool:
        """Whether the place runs more than once, with other values each time."""
        return repeats.repeated(self, node)

    def in_loop(self, node: cst.CSTNode) -> bool:
        """Whether the place stands in a loop of its own function."""
        return repeats.in_loop(self, node)

    def is_fed(self, call: Invocation) -> bool:
        """Whether the first argument of the call is more than a constant."""
        return any(self.only(node) is ... for node in call.positional(0) + call.argument("text"))

    def measures(self, node: cst.CSTNode) -> bool:
        """Whether the expression adds to the length of a tensor: a fixed budget in other words."""
        return ".shape" in self.source_of(node) or ".size(" in self.source_of(node)

    def only_in(self, nodes: list[cst.BaseExpression], constant: object) -> bool:
        """Whether nothing but this constant is given, or nothing at all."""
        return all(self.only(node) is constant for node in nodes)

    def is_within(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Whether the node is part of the other."""
        return any(parent is outer for parent, _ in self.ancestors(node))

    def is_literal(self, node: cst.CSTNode) -> bool:
        """Whether the node is a constant as it is written."""
        return is_literal(node)

    def is_one_row(self, node: cst.CSTNode) -> bool:
        """Whether the expression is one text, or a list of one."""
        return all(
            isinstance(value.constant, str)
            or isinstance(value.node, cst.FormattedString)
            or (isinstance(value.node, (cst.List, cst.Tuple)) and len(value.node.elements) == 1)
            for value in self.values(node)
        )

    def is_constant(self, node: cst.CSTNode) -> bool:
        """Whether the expression is made of constants, as lists of them are."""
        values = self.values(node)
        return bool(values) and all(
            value.kind == "constant"
            or (isinstance(value.node, (cst.List, cst.Tuple)) and all(self.is_constant(e.value) for e in value.node.elements))
            for value in values
        )

    def is_choice(self, node: cst.CSTNode) -> bool:
        """Whether the node is one branch of `a if b else c`."""
        return isinstance(self.index.parent.get(node), cst.IfExp)

    def is_over_lengths(self, node: cst.CSTNode) -> bool:
        """Whether the expression gives the lengths of rows: `len(row) for row in rows`."""
        return isinstance(node, (cst.GeneratorExp, cst.ListComp)) and self.source_of(node.elt).startswith("len(")

    def is_mapped(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in a function that a data set's `map` calls."""
        mapped = {v.node for call in self.calls if call.method == "map" for n in call.positional(0) for v in self.values(n)}
        mapped |= {v.node for call in self.calls if call.method == "map" for v in call.values("function")}
        return any(parent in mapped for parent, _ in self.ancestors(node))

    def collates_through(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in a helper that a function which makes batches calls."""
        function = repeats.enclosing(self, node)
        return function is not None and any(self.collates(site.node) for site in self.sites_of(function))

    def callees(self, node: cst.CSTNode) -> set[str]:
        """Give the qualified names of the calls that the expression may come from."""
        calls = [value.node for value in self.values(node) if isinstance(value.node, cst.Call)]
        return {name for call in calls for name in self.names(call.func)}

    def imports(self, ending: str) -> bool:
        """Whether the file imports a name that ends so."""
        return any(name.endswith(ending) for name in self.imported)

    def imports_root(self, root: str) -> bool:
        """Whether the file imports anything of the package."""
        return any(name.split(".")[0] == root for name in self.imported)

    @cached_property
    def decorators(self) -> list[cst.BaseExpression]:
        """The decorators of the file that are not calls."""
        found = [node.decorator for node in self.index.order if isinstance(node, cst.Decorator)]
        return [decorator for decorator in found if not isinstance(decorator, cst.Call)]

    @cached_property
    def subscripts(self) -> list[cst.Subscript]:
        """The subscripts of the file."""
        return [node for node in self.index.order if isinstance(node, cst.Subscript)]

    @cached_property
    def compiled(self) -> frozenset[cst.CSTNode]:
        """The functions of the file that `torch.compile(f)` is called on."""
        return graphs.compiled(self)

    def stands_alone(self, node: cst.CSTNode) -> bool:
        """Whether the call is a statement among others, so that it can be deleted."""
        statement = self.index.parent.get(node)
        line = self.index.parent.get(statement) if isinstance(statement, cst.Expr) else None
        block = self.index.parent.get(line) if isinstance(line, cst.SimpleStatementLine) else None
        return isinstance(block, (cst.IndentedBlock, cst.Module)) and len(block.body) > 1

    def in_graph(self, node: cst.CSTNode) -> bool:
        """Whether the node runs in the forward of a module or in a compiled function."""
        return graphs.in_graph(self, node)

    def is_compiled(self, node: cst.CSTNode) -> bool:
        """Whether the node runs in a compiled function."""
        return graphs.is_compiled(self, node)

    def calls_compiled(self, call: Invocation) -> bool:
        """Whether the callee is compiled."""
        return graphs.calls_compiled(self, call)

    def is_counter(self, node: cst.CSTNode) -> bool:
        """Whether the expression is the count of a loop."""
        return graphs.is_counter(self, node)

    def is_cut_by_counter(self, node: cst.CSTNode) -> bool:
        """Whether the expression is a slice up to the count of a loop."""
        return graphs.is_cut_by_counter(self, node)

    def is_masked_read(self, node: cst.Subscript) -> bool:
        """Whether the subscript reads through a boolean tensor."""
        return graphs.is_masked_read(self, node)

    def is_tensor(self, node: cst.CSTNode) -> bool:
        """Whether the expression surely is a tensor."""
        return graphs.is_tensor(self, node)

    def may_be_tensor(self, node: cst.CSTNode | None) -> bool:
        """Whether the expression surely is a tensor; nothing is none."""
        return node is not None and graphs.is_tensor(self, node)

    def is_tensor_argument(self, call: Invocation, name: str, position: int) -> bool:
        """Whether the argument surely is a tensor."""
        return any(graphs.is_tensor(self, node) for node in call.argument(name, position))

    @cached_property
    def compiles(self) -> bool:
        """Whether the file compiles something."""
        decorators = {name for decorator in self.decorators for name in self.names(decorator)}
        return "torch.compile" in decorators or any(
            call.is_a("torch", "compile") or (call.method == "compile" and self.kinds(call.func) == frozenset())
            for call in self.calls
            if "re.compile" not in call.names
        )

    @cached_property
    def pads_left(self) -> bool:
        """Whether some tokenizer of the file pads on the left."""
        values = [v for node in self.assigned("padding_side") for v in self.values(node)]
        values += [value for call in self.calls for value in call.values("padding_side")]
        return any(value.constant == "left" for value in values)

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
        return self.index.module.code_for_node(node)
