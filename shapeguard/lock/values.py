"""What a lock says, as values: the graphs that may compile, the eager signatures, and the jobs that need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = "shapeguard.lock"
SCHEMA = 1

Id = tuple[str, str]
"""Kind and key: what makes two graphs one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedGraph:
    """One graph of a region, which takes minutes to compile."""

    kind: str
    """`forward`, `backward`, `inference`."""
    key: str
    model: str = ""
    inputs: tuple[str, ...] = ()
    """Inputs of its region, parameters left out: `input_ids 4×128 int64`."""
    dtypes: tuple[str, ...] = ()
    """Types of all tensors in it, parameters too."""
    constants: tuple[str, ...] = ()
    """What is baked into it by value: `scale=2`, `autocast=bfloat16`."""
    parameters: str = ""
    """How many tensors the region takes as parameters and how large they are: `12 tensors, 9,456 values`."""
    nodes: int = 0
    jobs: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    """The jobs in which it first compiles after warm-up."""

    @property
    def id(self) -> Id:
        """Give what makes two graphs one."""
        return self.kind, self.key

    def __str__(self) -> str:
        shown = ", ".join(self.inputs[:3]) + (f" and {len(self.inputs) - 3} more" if len(self.inputs) > 3 else "")
        return " ".join(part for part in (self.kind, self.model, shown or self.key[:12]) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJob:
    """What one job needs beside its graphs."""

    settings: str = ""
    """Digest of what its configuration says of the run; empty after a merge of two that differ."""
    target: str = ""
    world: int = 1
    eager: tuple[str, ...] = ()
    """Signatures of eager operators, each with its key as last word."""
    fallbacks: tuple[str, ...] = ()
    """Operators that ran on the host for want of a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A whole lock."""

    toolchain: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[str, LockedJob] = field(default_factory=dict)
    graphs: Mapping[Id, LockedGraph] = field(default_factory=dict)

    def of(self, job: str) -> dict[Id, LockedGraph]:
        """Give the graphs of one job."""
        return {name: graph for name, graph in self.graphs.items() if job in graph.jobs}


def eager_key(line: str) -> str:
    """Give the key in an eager signature's line."""
    return line.rpartition(" ")[2]


def eager_text(line: str) -> str:
    """Give an eager signature's line without its key."""
    return line.rpartition(" ")[0] or line
