"""Finds steps and phases: optimizer steps, top-level forwards, `generate()`; or follows `shapeguard.step()`."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from shapeguard.neuron.sim.storage import origin_of, tokenized_of
from shapeguard.trace.model_keys import ModelFacts
from shapeguard.trace.recorder import EVAL, GENERATE, TRAIN, Recorder

_GENERATION = "transformers/generation/"


class Steps:
    """Keeps the recorder's step and phase."""

    def __init__(self, recorder: Recorder, *, max_steps: int | None, stop: Callable[[], None]) -> None:
        self.recorder = recorder
        self.max_steps = max_steps
        self.is_complete: Callable[[], bool] = lambda: False
        """Whether all has been seen that the program is run for."""
        self._stop = stop
        self._is_manual = False
        self._has_optimizer = False
        self._is_new_step = True
        self._is_compiled_now = False
        self._depth = threading.local()
        self._facts = ModelFacts()
        self._generation: FrameType | None = None
        self._instances: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()
        self._numbers = itertools.count(1)
        self.on_forward: Callable[[torch.nn.Module], None] = lambda module: None
        """Called with the module of each top-level forward."""
        self.on_inputs: Callable[[torch.nn.Module, tuple[Any, ...], dict[str, Any]], None] | None = None
        """Called with the module and the arguments of each top-level forward."""

    def install(self) -> None:
        """Watch modules and optimizers of this process."""
        _watch_forwards(self)
        _watch_optimizers(self)

    def forward_begins(self, module: torch.nn.Module | None, is_training: bool | None = None) -> None:
        """A top-level forward begins: of a module, or of a compiled function."""
        if module is not None:
            self.recorder.model = _name(module)
            self.recorder.model_facts = self._facts.of(module)
            inner = getattr(module, "_orig_mod", module)
            if inner not in self._instances:
                self._instances[inner] = next(self._numbers)
            self.recorder.instance = self._instances[inner]
            self.on_forward(module)
        phase = self._phase(module, is_training)
        is_part = phase == GENERATE and module is not None and module is not _generating(self._generation)
        self._note_owners(phase)
        if self._is_manual or (is_part and self.recorder.step):
            # An encoder or vision tower that `generate()` runs by itself is part of the step around it.
            self.recorder.phase = phase
        elif phase != TRAIN or self._is_new_step or not self._has_optimizer or self.recorder.phase != TRAIN:
            self._begin(phase)

    def _begin(self, phase: str) -> None:
        if phase == TRAIN:
            self._is_new_step = False
        self._check_limit()
        self.recorder.begin_step(phase)

    def _check_limit(self) -> None:
        if (self.max_steps is not None and self.recorder.step >= self.max_steps) or self.is_complete():
            self._stop()

    def _phase(self, module: torch.nn.Module | None, is_training: bool | None) -> str:
        self._generation = _generate_frame(sys._getframe(1))
        if self._generation is not None:
            return GENERATE
        if is_training is None:
            is_training = torch.is_grad_enabled() and (module is None or module.training)
        return TRAIN if is_training else EVAL

    def _note_owners(self, phase: str) -> None:
        """Keep the lines that made inputs of `generate()` and moved them to the device: what grows there is theirs."""
        if phase != GENERATE:
            return
        inputs = _inputs_of_generate(self._generation)
        self._generation = None
        moves = [{"role": "move", **site} for site in map(origin_of, inputs) if site]
        made = [{"role": "tokenize", **site} for site in map(tokenized_of, inputs) if site]
        self.recorder.owners = list({str(owner): owner for owner in (*moves, *made)}.values())

    def region_begins(self, is_training: bool | None) -> None:
        """A compiled region is compiled or runs; outside of any module this is a top-level forward."""
        if getattr(self._depth, "is_inside", False):
            return
        is_run = is_training is not None
        if not (is_run and self._is_compiled_now):
            self.forward_begins(None, is_training)
        # A region that was just compiled runs next: that is the same forward.
        self._is_compiled_now = not is_run

    def optimizer_made(self) -> None:
        """From here on a training step ends with the optimizer's step."""
        self._has_optimizer = True

    def optimizer_stepped(self) -> None:
        """The next forward in training begins a new step."""
        self._is_new_step = True
        if not self._is_manual:
            self._check_limit()

    def mark(self) -> None:
        """Begin a step where the user says so; steps are no longer found by themselves."""
        self._is_manual = True
        self._check_limit()
        self.recorder.begin_step(self.recorder.phase)


def _name(module: torch.nn.Module) -> str:
    inner = getattr(module, "_orig_mod", module)
    return type(inner).__name__


def _generate_frame(frame: FrameType | None) -> FrameType | None:
    """Give the nearest frame of transformers' generation that called this one, if one did."""
    while frame is not None:
        if _GENERATION in frame.f_code.co_filename.replace("\\", "/"):
            return frame
        frame = frame.f_back
    return None


def _generating(frame: FrameType | None) -> Any:
    """Give the model whose `generate()` runs."""
    while frame is not None:
        if frame.f_code.co_name == "generate" and _GENERATION in frame.f_code.co_filename.replace("\\", "/"):
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None


def _inputs_of_generate(frame: FrameType | None) -> list[torch.Tensor]:
    """Give the tensors that the user handed to `generate()`."""
    while frame is not None and frame.f_code.co_name != "generate":
        frame = frame.f_back
    if frame is None:
        return []
    given = [frame.f_locals.get("inputs"), *dict(frame.f_locals.get("kwargs") or {}).values()]
    return [value for value in given if isinstance(value, torch.Tensor)]


def _watch_forwards(steps: Steps) -> None:
    """Wrap `Module.__call__`, before Dynamo is imported: it then takes the wrapper for the plain one."""
    plain = torch.nn.Module.__call__
    depth = steps._depth
    is_compiling = torch.compiler.is_compiling

    def __call__(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if is_compiling() or getattr(depth, "is_inside", False):
            return plain(self, *args, **kwargs)
        depth.is_inside = True
        try:
            steps.forward_begins(self)
            if steps.on_inputs is not None:
                steps.on_inputs(self, args, kwargs)
            return plain(self, *args, **kwargs)
        finally:
            depth.is_inside = False

    # `generate()` compiles `model.__call__` itself: the simulated device compiles this one in its place.
    __call__._shapeguard_plain = plain  # type: ignore[attr-defined]
    torch.nn.Module.__call__ = __call__  # type: ignore[method-assign]


def _watch_optimizers(steps: Steps) -> None:
    from torch.optim import optimizer

    plain = optimizer.Optimizer.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        steps.optimizer_made()
        plain(self, *args, **kwargs)

    optimizer.Optimizer.__init__ = __init__  # type: ignore[method-assign]
    optimizer.register_optimizer_step_post_hook(lambda *args: steps.optimizer_stepped())
