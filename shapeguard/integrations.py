"""For programs of other libraries: a callback for the Trainer of transformers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from shapeguard.checks.watch import Compiled, Watch, begin
from shapeguard.core.errors import DeviceError, UsageError

if TYPE_CHECKING:
    _Base = object
else:
    try:
        from transformers import TrainerCallback as _Base
    except ImportError as error:
        raise DeviceError(
            "shapeguard.integrations needs transformers", hint="python -m pip install 'shapeguard[trace]'"
        ) from error

ACTIONS = ("stop", "warn", "raise")
_log = logging.getLogger("shapeguard")


class LateCompileError(RuntimeError):
    """A graph compiled after warm-up; the message says what, why, and at which line."""


class TrainerCallback(_Base):
    """Stops a training run at the first graph that compiles after warm-up, or warns of each.

    `action`: "stop" ends the training as the Trainer does at its last step, "raise" ends the program, "warn" goes on.
    Training and evaluation have `warmup_steps` each. On hardware too: there torch's own record of compiles is read.
    """

    def __init__(self, *, warmup_steps: int = 2, action: str = "stop") -> None:
        if action not in ACTIONS:
            raise UsageError(f"TrainerCallback(action={action!r})", hint=f"use one of: {', '.join(ACTIONS)}")
        self.warmup_steps = warmup_steps
        self.action = action
        self.late: list[str] = []
        """What compiled after warm-up, one line each."""
        self._watch: Watch | None = None
        self._steps = {"train": 0, "eval": 0}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Begin to watch."""
        self._watch = begin()
        self._steps = {"train": 0, "eval": 0}
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Look at a training step."""
        return self._look("train", control)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Look at a step of an evaluation."""
        return self._look("eval", control)

    def _look(self, phase: str, control: Any) -> Any:
        if self._watch is None:
            self._watch = begin()
        self._steps[phase] += 1
        graphs = self._watch.look().graphs
        if graphs and self._steps[phase] > self.warmup_steps:
            self._act(phase, graphs, control)
        return control

    def _act(self, phase: str, graphs: list[Compiled], control: Any) -> None:
        assert self._watch is not None
        lines = self._watch.causes(graphs)
        self.late += lines
        listed = "\n  ".join(lines)
        told = f"compiled after warm-up, in step {self._steps[phase]} of {phase}:\n  {listed}"
        if self.action == "raise":
            raise LateCompileError(told)
        if self.action == "warn":
            _log.warning("%s", told)
            return
        _log.error("%s\n  the training ends here (shapeguard.integrations.TrainerCallback)", told)
        control.should_training_stop = True
