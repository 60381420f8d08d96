"""A finished run as values: what the event files say, with repeated parts held once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from shapeguard.core.events import REGION_KINDS, Outcome

SEEN = (Outcome.COMPILED, Outcome.SHARED)
"""Outcomes of a region that was handed to the backend and got its graphs."""
DYNAMIC = -1
"""Stands for a size that was symbolic."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Site:
    """A line of the user's code."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def plain(self) -> dict[str, str | int]:
        """Give it as JSON."""
        return {"file": self.file, "line": self.line, "function": self.function}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input of a graph."""

    path: str
    """As the user would write it: `input_ids`, `group[2]`."""
    shape: tuple[int, ...]
    dtype: str
    layout: str = ""
    device: str = ""
    """Empty for the Neuron device."""
    grad: bool | None = None
    """Whether it requires a gradient; None where that was not recorded."""

    def plain(self) -> dict[str, object]:
        """Give it as JSON."""
        return {"path": self.path, "shape": list(self.shape), "dtype": self.dtype, "layout": self.layout}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A line that owns a shape, by its role: move, collate, tokenize, loader."""

    role: str
    site: Site
    path: str = ""
    """The input that a move brought; empty where that was not recorded."""
    size: int = 0
    """The length that a tokenizer gave; 0 for other roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """One compile line."""

    n: int
    kind: str
    outcome: str
    key: str = ""
    name: str = ""
    """The graph's name, or the operator's."""
    region: int = 0
    code: Site | None = None
    """The compiled code object, on a region."""
    instance: int = 0
    """Which module the region, or the model around the operator, is; 0 where that was not recorded."""
    inputs: tuple[Input, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    guard: str = ""
    modes: tuple[tuple[str, str], ...] = ()
    model: str = ""
    config: str = ""
    """Digest of the model's configuration; empty where that was not recorded."""
    tp: int = 0
    """Size of tensor parallelism; 0 where that was not recorded."""
    nodes: int = 0
    operators: Mapping[str, int] = field(default_factory=dict)
    """How often each operator occurs in the graph."""
    dtypes: tuple[str, ...] = ()
    """Types of all tensors in the graph; empty where that was not recorded."""
    neuron: str = ""
    """TorchNeuron's own key in memory; empty where it was not recorded, as on the simulated device."""
    neff: str = ""
    """The stack's own key of the compiled file on disk; empty where there is none."""
    seconds: float | None = None
    """What the compiler took; None where nothing was compiled, as on the simulated device."""
    collectives: int = 0
    outline: str = ""
    """Digest of the graph without its constants; empty where that was not recorded."""
    exchange: str = ""
    """Digest of the graph's collectives in order; empty for none."""
    limit: int = 0
    certainty: str = ""
    step: int = 0
    phase: str = ""
    phase_step: int = 0
    site: Site | None = None
    owners: tuple[Owner, ...] = ()

    @property
    def is_graph(self) -> bool:
        """Whether it is a graph after AOTAutograd that the backend built or found."""
        return self.kind in REGION_KINDS and self.outcome != Outcome.FAILED

    @property
    def is_region(self) -> bool:
        """Whether it is a region that got its graphs."""
        return self.kind == "region" and self.outcome in SEEN

    @property
    def is_eager(self) -> bool:
        """Whether it is a new key of an eager operator."""
        return self.kind == "eager" and self.outcome != Outcome.FAILED

    @property
    def file_line(self) -> tuple[str, int]:
        """Give the user's line as something to group by."""
        return (self.site.file, self.site.line) if self.site else ("", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A line at which Dynamo ends a graph and begins another."""

    reason: str
    """Its kind, as Dynamo calls it."""
    site: Site
    file: str
    """File of the code object that is compiled in pieces."""
    resumes: int
    """The line of that code object that the rest of it is named after."""
    is_loop: bool
    """Inside a loop: then nothing of the code object is compiled."""
    step: int
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One collated batch."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    site: Site | None
    loader: Site | None
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """A top-level forward with inputs of new shapes, on one of several ranks."""

    model: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    step: int
    phase: str
    phase_step: int
    site: Site | None
    owners: tuple[Owner, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """What one operator without a Neuron kernel cost so far."""

    calls: int
    num_bytes: int
    site: Site | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A model's forward on the CPU while a Neuron device was there."""

    model: str
    site: Site | None
    loaded: Site | None
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A problem line."""

    code: str
    message: str
    site: Site | None = None


@dataclass(slots=True, kw_only=True)
class Process:
    """What one process wrote; filled while its file is read."""

    rank: int = 0
    world_size: int = 1
    started: bool = False
    forked: bool = False
    """Forked from a process that had begun: such a one often ends without a word (`os._exit`), and that is no fault."""
    device: Mapping[str, object] = field(default_factory=dict)
    warmup_steps: int = 2
    compiles: list[Compile] = field(default_factory=list)
    num_steps: int = 0
    phases: dict[str, int] = field(default_factory=dict)
    batches: dict[Batch, int] = field(default_factory=dict)
    """Distinct batches in the order seen, with how often each came."""
    forwards: list[Forward] = field(default_factory=list)
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    """Real and padded tokens."""
    rows: Counter[int] = field(default_factory=Counter)
    """How many rows of batches had which length before they were padded."""
    breaks: list[Break] = field(default_factory=list)
    fallbacks: dict[str, Fallback] = field(default_factory=dict)
    placements: list[Placement] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    end: str = ""
    """How it ended; empty where no `end` line was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run folder as read: its processes in the order of ranks, and what is known of the command."""

    processes: tuple[Process, ...]
    started: Mapping[str, object] = field(default_factory=dict)
    """What `run.json` says: command, device asked for, warm-up."""

    @property
    def ranks(self) -> dict[int, list[Process]]:
        """Give the processes by rank; a launcher or a loader's worker counts with the rank it inherits."""
        found: dict[int, list[Process]] = {}
        for process in self.processes:
            found.setdefault(process.rank, []).append(process)
        return dict(sorted(found.items()))
