"""What a configuration says of jobs: what is run, how, and how much it may compile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

LEVELS = ("off", "warn", "error")
_LEVEL = {"words": LEVELS}
_COUNT = {"min": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBudget:
    """A limit on some of a job's graphs: those of a model and kind, or those that take an input."""

    graph: str = "*"
    """Pattern of what is counted, after `KIND MODEL`: `forward Llama*`, `backward *`."""
    input: str = ""
    """Pattern of an input's name; then only graphs that take such an input are counted."""
    graphs: int | None = field(default=None, metadata=_COUNT)
    """How many such graphs there may be."""
    shapes: int | None = field(default=None, metadata=_COUNT)
    """How many shapes the input may have in them."""
    level: str = field(default="", metadata={"words": ("", *LEVELS)})
    """`off`, `warn` or `error`; empty: the level of the job's budget."""

    @property
    def name(self) -> str:
        """What the table calls it."""
        parts = [part for part in (self.input and f"input {self.input}", self.graph != "*" and self.graph) if part]
        return " of ".join(parts) or "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of a job; one that is not given is no limit."""

    graphs: int | None = field(default=None, metadata=_COUNT)
    """Different graphs of regions; forward and backward count one each. They cost minutes to an hour."""
    eager: int | None = field(default=None, metadata=_COUNT)
    """Different signatures of eager operators, which cost seconds each."""
    after_warmup: int | None = field(default=None, metadata=_COUNT)
    """Graphs that first compile after warm-up."""
    compile_minutes: int | float | None = field(default=None, metadata=_COUNT)
    """Estimated minutes to compile all graphs of regions, one after the other."""
    fallbacks: int | None = field(default=None, metadata=_COUNT)
    """Operators that run on the host for want of a kernel."""
    match: tuple[PartBudget, ...] = ()
    """Limits on some of the graphs."""
    level: str = field(default="error", metadata=_LEVEL)
    """What passing a limit means: `off`, `warn`, `error`."""
    levels: Mapping[str, str] = field(default_factory=dict, metadata=_LEVEL)
    """The same for one limit by its name, and for `new` and `unused`: what differs from the lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Lets one limit be passed for a time."""

    limit: str
    """Name of the limit as the table of `check` has it, without the job: `graphs`, `after-warmup`."""
    reason: str = field(metadata={"filled": True})
    """Why; shown whenever it is used."""
    until: date
    """The last day it holds, as a TOML date: `2026-12-31`."""
    allow: int | None = field(default=None, metadata=_COUNT)
    """Up to how many; without it, any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """A command that is traced, and its budget."""

    command: tuple[str, ...] = field(metadata={"filled": True})
    """Words as after `shapeguard trace`: a `.py` file or `-m MODULE` with arguments, or any command."""
    inner: str = field(default="cpu", metadata={"words": ("cpu", "meta")})
    """What the simulated device computes on; `meta` computes nothing and takes a model of any size."""
    target: str = field(default="trn2", metadata={"words": ("trn2", "trn3")})
    """The chip that graphs are compiled for."""
    world: int | str = field(default=1, metadata=_COUNT | {"min": 1})
    """Processes that `torchrun` starts; or a simulated world, `"tp=2,fsdp=2"`, as `trace --world` takes it."""
    stub_weights: bool = False
    """Build models from their configuration, read no weights."""
    max_steps: int | None = field(default=None, metadata={"min": 1})
    """End the program after so many steps."""
    warmup_steps: int = field(default=2, metadata=_COUNT)
    """Steps of each phase that may compile."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the program, beside those of the shell."""
    budget: Budget = field(default_factory=Budget)
    """Its limits."""
    waivers: tuple[Waiver, ...] = ()
    """Limits that may be passed for a time."""
