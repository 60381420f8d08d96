"""A compiled graph as cache, lock and reports speak of it: keys that name it, and the record of what is known of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SIMULATED, REAL = "simulated", "real"
EAGER_KINDS = ("eager", "collective")
"""Kinds that cost seconds; the others cost minutes to an hour and are never added to them."""

_NOT_CONFIGURATION = frozenset({"_name_or_path", "name_or_path", "transformers_version", "_commit_hash", "_attn_name"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """A model by its class and its configuration, never by its weights."""

    name: str
    """Class of the model; empty where no model was seen."""
    config: str = ""
    """Digest of the configuration; empty where it was not recorded."""

    def __str__(self) -> str:
        return f"{self.name}@{self.config}" if self.config else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphKey:
    """What decides whether two compiled graphs are one."""

    graph: str
    """Digest of the program after AOTAutograd, in hex digits."""
    device: str
    """`simulated` or `real`: their records never mix."""
    target: str
    """Platform: `trn2`, `trn3`."""
    compiler: str = ""
    """Compiler and version: `neuronx-cc 2.21.1`; empty on the simulated device, which has none."""
    flags: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Name of the record in the cache: 40 hex digits."""
        text = json.dumps([self.graph, self.device, self.target, self.compiler, self.flags])
        return hashlib.sha256(text.encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInput:
    """One input as the user knows it."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    layout: str = ""
    """Empty for contiguous."""

    def __str__(self) -> str:
        sizes = "×".join(str(size) for size in self.shape) or "scalar"
        layout = f" {self.layout}" if self.layout else ""
        return f"{self.path} {sizes} {self.dtype}{layout}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neff:
    """The compiled file of a graph."""

    digest: str
    """SHA-256 of the file."""
    size_bytes: int
    path: str = ""
    """Where it lies below the folder that the Neuron stack reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    """What is known of one compiled graph."""

    key: GraphKey
    model: ModelKey
    kind: str
    """`forward`, `backward`, `inference`, `eager`, `collective`."""
    name: str = ""
    """The graph's name, or the operator's."""
    inputs: tuple[GraphInput, ...] = ()
    """Inputs of the region the graph belongs to, parameters left out; of an operator: its own."""
    constants: tuple[tuple[str, str], ...] = ()
    """What is baked into the graph by value."""
    modes: tuple[tuple[str, str], ...] = ()
    """Gradient, training, autocast."""
    world_size: int = 1
    tp: int = 0
    """Size of tensor parallelism; 0 where it was not recorded."""
    nodes: int = 0
    operators: Mapping[str, int] = field(default_factory=dict)
    """How often each operator occurs; empty where it was not recorded."""
    compile_s: float | None = None
    """Seconds the compiler took; None where nothing was compiled."""
    neff: Neff | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """Toolchain: `torch`, `transformers`, `torch-neuronx`, `neuronx-cc`, `nki`, `python`, `shapeguard`."""
    neuron_key: str = ""
    """TorchNeuron's own key in memory."""
    persistent_key: str = ""
    """TorchNeuron's own key on disk, which is the name of the NEFF."""
    source: str = ""
    """How the record was obtained: `trace`, `import`, `scan`."""
    jobs: tuple[str, ...] = ()
    first_seen: int = 0
    """Seconds since 1970."""
    last_seen: int = 0
    hits: int = 0
    """Runs that needed the graph again."""

    @property
    def is_eager(self) -> bool:
        """Whether it is an operator, which costs seconds, and not a graph of a region."""
        return self.kind in EAGER_KINDS


def model_key(name: str, config: Mapping[str, object]) -> ModelKey:
    """Give the key of a Hugging Face model from its class name and `config.to_diff_dict()`."""
    kept = {key: value for key, value in config.items() if key not in _NOT_CONFIGURATION}
    return ModelKey(name=name, config=_digest(_without_names(kept)))


def module_key(name: str, classes: Iterable[str], parameters: Iterable[tuple[str, tuple[int, ...], str]]) -> ModelKey:
    """Give the key of a plain module from class names and its parameters' names, shapes and dtypes."""
    rows = [[path, list(shape), dtype] for path, shape, dtype in parameters]
    return ModelKey(name=name, config=_digest([sorted(set(classes)), sorted(rows, key=str)]))


def _without_names(value: object) -> object:
    """Drop the names of checkpoints from nested configurations too."""
    if isinstance(value, Mapping):
        return {str(k): _without_names(v) for k, v in value.items() if k not in _NOT_CONFIGURATION}
    if isinstance(value, (list, tuple)):
        return [_without_names(item) for item in value]
    return value


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
