"""What warm-up speaks of: graphs that a lock needs, recipes that make them compile, and what became of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shapeguard.checks.job import Job
from shapeguard.checks.signatures import operator
from shapeguard.lock.values import Lock, eager_key, eager_text

EAGER = "eager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One graph, or one eager signature, of a lock."""

    key: str
    kind: str
    """`forward`, `backward`, `inference`, `eager`."""
    text: str
    """What it is, for reading."""
    name: str = ""
    """The model of a graph, the operator of a signature."""
    inputs: tuple[str, ...] = ()
    nodes: int = 0
    target: str = ""
    jobs: tuple[str, ...] = ()

    @property
    def is_graph(self) -> bool:
        """Whether it is a graph of a region, which takes minutes, and not an operator."""
        return self.kind != EAGER


def needs(lock: Lock, jobs: Iterable[str]) -> dict[str, Need]:
    """Give all that the jobs of a lock need, by key."""
    wanted = [name for name in lock.jobs if name in set(jobs)]
    found: dict[str, Need] = {}
    for graph in lock.graphs.values():
        owners = tuple(name for name in wanted if name in graph.jobs)
        if owners:
            found[graph.key] = Need(
                key=graph.key,
                kind=graph.kind,
                text=str(graph),
                name=graph.model,
                inputs=graph.inputs,
                nodes=graph.nodes,
                target=lock.jobs[owners[0]].target,
                jobs=owners,
            )
    owners_of: dict[str, list[str]] = {}
    for name in wanted:
        for line in lock.jobs[name].eager:
            owners_of.setdefault(line, []).append(name)
    for line, names in owners_of.items():
        found.setdefault(eager_key(line), _signature(line, names, lock))
    return found


def _signature(line: str, jobs: list[str], lock: Lock) -> Need:
    return Need(
        key=eager_key(line),
        kind=EAGER,
        text=eager_text(line),
        name=operator(line),
        target=lock.jobs[jobs[0]].target,
        jobs=tuple(jobs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A job that makes a known set of graphs compile."""

    job: Job
    keys: frozenset[str]
    """What it needs of the lock."""
    size: str = ""
    """The sizes of its largest input, for the line of progress: `8×512`."""

    @property
    def name(self) -> str:
        """Give the job's name."""
        return self.job.name

    @property
    def label(self) -> str:
        """Give what the line of progress calls it."""
        return f"{self.name} {self.size}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One try of a recipe, as it is sent to a worker: plain values, since it may go to another machine."""

    id: str
    """`train-1`: the recipe and the number of the try."""
    job: str
    words: tuple[str, ...]
    """The command as it follows `shapeguard trace`."""
    root: str
    """Folder that the command runs in."""
    folder: str
    """Folder of the run, which is not there yet."""
    neff_dir: str
    env: Mapping[str, str]
    """Variables beside those of the machine it runs on."""
    settings: Mapping[str, str | int | bool | None]
    """The settings of the trace."""
    world: str = ""
    """Sizes of a simulated world."""
    until: tuple[str, ...] = ()
    """Keys after which the program may end; empty: it runs to its end."""
    files: tuple[str, ...] = ()
    """Compiled files of its other graphs, by their place: another machine is to have them too."""
    cores: int = 1
    """NeuronCores it takes: one a rank."""
    timeout_s: float = 0.0
    """0: none."""


LOST = "worker-lost"
"""Why a try ended that is nobody's fault: the recipe is tried again without counting it."""
TIMEOUT, MEMORY = "timeout", "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a try."""

    id: str
    exit_code: int | None = None
    """None where the program did not come to its end."""
    why: str = ""
    """Why it did not: `timeout`, `memory`, `worker-lost`, or the message of an error."""
    hint: str = ""
    peak_bytes: int = 0
    wall_s: float = 0.0
    log: str = ""
    """The last lines that the program printed, where it failed."""
    records: tuple[bytes, ...] = ()
    """Encoded records of the graphs that are compiled now, with their files."""
    seen: tuple[str, ...] = ()
    """Keys that the program asked for."""
    misses: tuple[Miss, ...] = ()
    """What would have compiled while that was forbidden."""
    neffs: Mapping[str, bytes] = field(default_factory=dict)
    """Compiled files by their place, where they are not in a folder of this machine."""
    toolchain: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether the program went to its end."""
        return self.exit_code == 0 and not self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A graph that is not there though it should be."""

    key: str
    text: str
    why: str
    job: str = ""
    rank: int | None = None
    """The rank that asked for it; None where nothing was run."""
    record: bytes = b""
    """Encoded record of what was asked for, where a run asked."""
