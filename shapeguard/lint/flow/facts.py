"""What rules ask about the code, in words of their own: they never see libcst."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import libcst as cst

from shapeguard.lint.flow import graphs, guards, inputs, masked, measures, reads, repeats, rows
from shapeguard.lint.flow.calls import Invocation
from shapeguard.lint.flow.draft import Draft, Fixes, append, is_literal
from shapeguard.lint.flow.flow import Flow
from shapeguard.lint.flow.moves import is_cpu
from shapeguard.lint.flow.scope import path_of
from shapeguard.lint.flow.sketch import Sketch
from shapeguard.lint.flow.values import method


class Facts(Flow):
    """The questions of the rules."""

    def __init__(self, module: cst.Module, sketch: Sketch | None = None) -> None:
        super().__init__(module, sketch)
        self.fixes = Fixes()

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
        return function is not None and not measures.pads_again(self, function)

    def purpose(self, node: cst.CSTNode, *, wide: bool = False) -> str:
        """Give the words around a call that say what it is for; if wide, those of its class too."""
        return rows.target_name(self, node, wide=wide)

    def serves(self, word: str) -> bool:
        """Whether a name or text of the file, comments and docstrings left out, holds the word."""
        return any(word in each for each in self.words)

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether the expression has other values from call to call of its place."""
        return repeats.varies(self, node) and repeats.repeated(self, node)

    def is_repeated(self, node: cst.CSTNode) -> bool:
        """Whether the place runs more than once, with other values each time."""
        return repeats.repeated(self, node)

    def in_loop(self, node: cst.CSTNode) -> bool:
        """Whether the place stands in a loop of its own function."""
        return repeats.in_loop(self, node)

    def runs_once(self, node: cst.CSTNode) -> bool:
        """Whether the place stands in a constructor, outside a loop: what it makes stays as it is."""
        function = repeats.enclosing(self, node)
        is_constructor = isinstance(function, cst.FunctionDef) and function.name.value in ("__init__", "__post_init__")
        return is_constructor and not repeats.in_loop(self, node)

    def is_fed(self, call: Invocation) -> bool:
        """Whether the first argument of the call is more than a constant, or a list of them."""
        texts = call.positional(0) + call.argument("text")
        # The items of a list of constants are texts of different lengths.
        is_item = any(value.kind == "item" for node in texts for value in self.values(node))
        return is_item or any(not self.is_constant(node) for node in texts)

    def measures(self, node: cst.CSTNode) -> bool:
        """Whether the expression adds to the length of a tensor: a fixed budget in other words."""
        return ".shape" in self.source_of(node) or ".size(" in self.source_of(node)

    def only_in(self, nodes: list[cst.BaseExpression], constant: object) -> bool:
        """Whether nothing but this constant is given, or nothing at all."""
        return all(self.only(node) == constant for node in nodes)

    def feeds_backward(self, node: cst.CSTNode) -> bool:
        """Whether a loop over what the call gives runs a backward."""
        backwards = [call.node for call in self.calls if call.method == "backward"]
        loops = [p for call in backwards for p, _ in self.ancestors(call) if isinstance(p, cst.For)]
        if any(loop.iter is node or self.is_within(node, loop.iter) for loop in loops):
            return True
        targets = self.purpose(node).split()
        iterated = {word for loop in loops for word in rows.words_of(self, loop.iter)}
        return bool(iterated & set(targets[:1]))

    def is_placed_elsewhere(self, node: cst.CSTNode) -> bool:
        """Whether a model is loaded with a `device_map` that names another device than Neuron."""
        loaded = {value.node for value in self.values(node)}
        maps = [value for call in self.calls if call.node in loaded for value in call.values("device_map")]
        return any(isinstance(v.constant, str) and v.constant.split(":")[0] in guards.OTHERS for v in maps)

    def with_inputs(self, draft: Draft | None, call: Invocation) -> Draft | None:
        """Let the inputs of plain forwards follow the model that the call loads, where the fix moves it."""
        if draft is None:
            return None
        changes = [append(node, f".to({path}.device)") for node, path in inputs.made_on_cpu(self, call.node)]
        return dataclasses.replace(draft, changes=(*draft.changes, *changes))

    def is_put_somewhere(self, node: cst.CSTNode) -> bool:
        """Whether the expression is what `.to(device)` gave, a model and no name of one, and not on the CPU by will."""
        calls = [value.node for value in self.values(node) if isinstance(value.node, cst.Call)]
        moved = [call for call in calls if isinstance(call.func, cst.Attribute) and method(call) in ("to", "cuda")]
        return any(call.args and not is_cpu(self, call.args[0].value) for call in moved)

    def is_literal(self, node: cst.CSTNode) -> bool:
        """Whether the node is a constant as it is written."""
        return is_literal(node)

    def is_one_row(self, node: cst.CSTNode) -> bool:
        """Whether the expression is one text, or a list of one."""
        return not rows.grows(self, node) and all(rows.is_one_row(self, value) for value in self.values(node))

    def is_constant(self, node: cst.CSTNode) -> bool:
        """Whether the expression is made of constants, as lists of them are."""
        values = self.values(node)
        return bool(values) and not rows.grows(self, node) and all(rows.is_constant(self, value) for value in values)

    def is_choice(self, node: cst.CSTNode) -> bool:
        """Whether the node is one branch of `a if b else c`."""
        return isinstance(self.index.parent.get(node), cst.IfExp)

    def is_alternative(self, node: cst.CSTNode) -> bool:
        """Whether the name that the node is assigned to gets another value in the other branch of an `if`."""
        return measures.is_alternative(self, node)

    def never_ends(self, node: cst.CSTNode) -> bool:
        """Whether the expression is an object of the file's whose `__iter__` is a `while True`."""
        called = [value.node.func for value in self.values(node) if isinstance(value.node, cst.Call)]
        scopes = [self.index.inner.get(v.node) for func in called for v in self.values(func) if v.kind == "class"]
        methods = {b.node for s in scopes if s is not None for b in s.bindings.get("__iter__", [])}
        loops = [node for node in self.index.order if isinstance(node, cst.While) and self.only(node.test) is True]
        return any(self.is_within(loop, found) for loop in loops for found in methods)

    def is_compared(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in a comparison or an assertion: what it gives is only looked at."""
        return any(isinstance(parent, (cst.Comparison, cst.Assert)) for parent, _ in self.ancestors(node))

    @cached_property
    def makes_ragged_rows(self) -> bool:
        """Whether a data set of the file gives tokens whose number hangs on the index."""
        return rows.makes_ragged_rows(self)

    def is_over_lengths(self, node: cst.CSTNode) -> bool:
        """Whether the expression gives the lengths of rows: `len(row) for row in rows`."""
        return measures.is_over_lengths(self, node)

    def is_mapped(self, node: cst.CSTNode) -> bool:
        """Whether the node stands in a function that a data set's `map` calls."""
        mapped = {
            v.node for call in self.calls if call.method == "map" for n in call.positional(0) for v in self.values(n)
        }
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
    def subscripts(self) -> list[cst.Subscript]:
        """The subscripts of the file."""
        return [node for node in self.index.order if isinstance(node, cst.Subscript)]

    def drop_move(self, node: cst.Call) -> Draft | None:
        """Take a move to a device away, with its whole statement where that does nothing else."""
        statement = self.index.parent.get(node)
        base = node.func.value if isinstance(node.func, cst.Attribute) else None
        comprehension = next((p for p, _ in self.ancestors(node) if isinstance(p, cst.DictComp)), None)
        if comprehension is not None:
            statement, items = self.index.parent.get(comprehension), comprehension.for_in.iter
            base = items.func.value if isinstance(items, cst.Call) and isinstance(items.func, cst.Attribute) else None
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1 and base is not None:
            target = statement.targets[0].target
            if isinstance(target, cst.Name) and path_of(base) == target.value and self.stands_alone(statement.value):
                return self.fixes.drop_statement(statement, "leave the inputs on the CPU")
        return self.fixes.drop_move(node)

    def stands_alone(self, node: cst.CSTNode) -> bool:
        """Whether the call is a statement among others, so that it can be deleted."""
        statement = self.index.parent.get(node)
        line = self.index.parent.get(statement) if isinstance(statement, (cst.Expr, cst.Assign)) else None
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
            return False
        block = self.index.parent.get(line)
        return isinstance(block, (cst.IndentedBlock, cst.Module)) and len(block.body) > 1

    def in_graph(self, node: cst.CSTNode) -> bool:
        """Whether the node runs in the forward of a module or in a compiled function."""
        return graphs.in_graph(self, node)

    def is_compiled(self, node: cst.CSTNode) -> bool:
        """Whether the node runs in a compiled function."""
        return graphs.is_compiled(self, node)

    def where_form(self, node: cst.Subscript) -> Draft | None:
        """Give the fix that writes a read through a mask with `where`; None where that is not the same."""
        return masked.where_form(self, node)

    @cached_property
    def conditions(self) -> list[cst.CSTNode]:
        """The conditions in compiled functions that read a tensor."""
        return list(reads.conditions(self))

    def is_value(self, node: cst.CSTNode) -> bool:
        """Whether Python must read a tensor to know what the expression is."""
        return reads.is_value(self, node)

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
