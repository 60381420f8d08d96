"""`shapeguard.expect`: how much a piece of a program may compile, as a context manager and as a decorator."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from shapeguard.checks.watch import Compiled, Seen, Watch, begin
from shapeguard.core.errors import DeviceError, UsageError
from shapeguard.trace import api

P = ParamSpec("P")
T = TypeVar("T")
_MOST_NAMED = 8


class BudgetError(AssertionError):
    """More compiled than was allowed; the message says what, why, and at which line."""


class Window(AbstractContextManager["Window"]):
    """A piece of a program that may compile so much; afterwards `graphs` and `eager` say what did."""

    def __init__(self, limits: dict[str, int], warmup_steps: int) -> None:
        self._limits = limits
        self._warmup_steps = warmup_steps
        self._watch: Watch
        self._step = 0
        self._is_manual = False
        self._undo: list[Callable[[], None]] = []
        self._late: list[Compiled] = []
        self.graphs: list[Compiled] = []
        """Graphs of regions that compiled."""
        self.eager: list[Compiled] = []
        """Signatures of eager operators that compiled, where they can be seen."""

    @property
    def late(self) -> list[Compiled]:
        """Graphs that compiled after warm-up."""
        return [*self._late, *(graph for graph in self.graphs if graph.phase_step > self._warmup_steps)]

    def __enter__(self) -> Window:
        """Begin to count."""
        self._watch = begin()
        if not self._watch.counts_eager:
            self._count_steps()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Compare, unless the piece itself has failed."""
        __tracebackhide__ = True
        for undo in self._undo:
            undo()
        self._take()
        if error is None:
            self._judge()

    def step(self) -> None:
        """Mark the beginning of a step by hand; the optimizer's steps then no longer count."""
        self._is_manual = True
        self._next()

    def _next(self) -> None:
        self._take()
        self._step += 1

    def _optimizer_stepped(self, *args: object) -> None:
        if not self._is_manual:
            self._next()

    def _count_steps(self) -> None:
        """Outside of a trace: a step ends with the optimizer's, or begins with `shapeguard.step()`."""
        api._ON_STEP.append(self.step)
        self._undo.append(lambda: api._ON_STEP.remove(self.step))
        if "torch" in sys.modules:
            optimizer: Any = import_module("torch.optim.optimizer")
            hook = optimizer.register_optimizer_step_post_hook(self._optimizer_stepped)
            self._undo.append(hook.remove)

    def _take(self) -> None:
        seen: Seen = self._watch.look()
        self.graphs += seen.graphs
        self.eager += seen.eager
        # A mark by hand begins a step, the optimizer's ends one.
        running = self._step if self._is_manual else self._step + 1
        if not self._watch.counts_eager and running > self._warmup_steps:
            self._late += seen.graphs

    def _judge(self) -> None:
        __tracebackhide__ = True
        if "eager" in self._limits and not self._watch.counts_eager:
            raise DeviceError(
                "expect(eager=…) cannot be judged here: eager operators are only seen on the simulated device",
                hint="run it under `shapeguard trace`, or `pytest --shapeguard`",
            )
        found = {"graphs": self.graphs, "after_warmup": self.late, "eager": self.eager}
        said = [self._said(name, limit, found[name]) for name, limit in self._limits.items()]
        if any(said):
            raise BudgetError("\n".join(line for line in said if line))

    def _said(self, name: str, limit: int, found: list[Compiled]) -> str:
        if len(found) <= limit:
            return ""
        # What is over the limit is at the end: the first ones were allowed.
        shown = found[limit:][:_MOST_NAMED]
        left = len(found) - limit - len(shown)
        lines = [f"{_HEADS[name].format(_count(len(found), name))}, the limit is {limit}; over it:"]
        lines += [f"  {line}" for line in self._watch.causes(shown)]
        return "\n".join([*lines, *([f"  and {left} more"] if left else [])])


_HEADS = {"graphs": "{} compiled", "after_warmup": "{} compiled after warm-up", "eager": "{} compiled"}


def _count(number: int, name: str) -> str:
    noun = "eager signature" if name == "eager" else "graph"
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Expectation:
    """Limits that `with` and `@` take."""

    def __init__(self, limits: dict[str, int], warmup_steps: int) -> None:
        self._limits = limits
        self._warmup_steps = warmup_steps
        self._open: list[Window] = []

    def __enter__(self) -> Window:
        """Begin to count."""
        self._open.append(Window(self._limits, self._warmup_steps))
        return self._open[-1].__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Compare."""
        __tracebackhide__ = True
        self._open.pop().__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Hold each call of a function to the limits."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError("expect() cannot decorate a generator: its body runs later", hint="use `with` inside it")
        if inspect.iscoroutinefunction(function):
            plain: Any = function

            @functools.wraps(function)
            async def wait(*args: Any, **kwargs: Any) -> Any:
                with Window(self._limits, self._warmup_steps):
                    return await plain(*args, **kwargs)

            return wait  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with Window(self._limits, self._warmup_steps):
                return function(*args, **kwargs)

        return call


def expect(
    *, graphs: int | None = None, after_warmup: int | None = None, eager: int | None = None, warmup_steps: int = 2
) -> Expectation:
    """Hold a piece of a program to limits: at most so many graphs, so many after warm-up, so many eager signatures.

    Forward and backward are one graph each. What was compiled before the piece began is not counted again. Works under
    `shapeguard trace`, under `pytest --shapeguard` and, for graphs, on any device: there torch's own record is read.
    """
    given = {"graphs": graphs, "after_warmup": after_warmup, "eager": eager}
    limits = {name: limit for name, limit in given.items() if limit is not None}
    if not limits:
        raise UsageError("expect() needs a limit", hint="for example expect(graphs=1, after_warmup=0)")
    for name, limit in {**limits, "warmup_steps": warmup_steps}.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise UsageError(f"expect({name}={limit!r}): a limit is a whole number from 0 up")
    return Expectation(limits, warmup_steps)
