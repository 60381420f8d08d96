"""How the Neuron stacks lay out their folders of compiled files (NEFFs): names only, nothing is read here.

TorchNeuron, async mode    `ab/cd/<32 hex>.neff`, named by the first digits; locks `locks/<32 hex>.lock` elsewhere
TorchNeuron, sync mode     `<64 hex>/<64 hex>.neff`
torch-xla (Trn1, Inf2)     `neuronxcc-VERSION/MODULE_<hash>+<flags>/` with `model.neff`, `model.hlo_module.pb`,
                           `compile_flags.json`, `model.done` after success, `model.log` after failure, and
                           `model.hlo_module.pb.lock` while a process compiles
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

NEFF, DONE, LOG = "model.neff", "model.done", "model.log"
_ASYNC = re.compile(r"([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{32})\.neff")
_SYNC = re.compile(r"([0-9a-f]{64})/([0-9a-f]{64})\.neff")
_COMPILER = re.compile(r"neuronxcc-([0-9][0-9A-Za-z.+]*)")
_MODULE = re.compile(r"MODULE_([0-9A-Za-z_]+)(?:\+([0-9A-Za-z]+))?")
_LOCK = re.compile(r"[0-9A-Za-z._-]+\.lock")
SIMULATED = b"shapeguard: simulated, no NEFF\n"
"""First bytes of what the simulated device puts in a NEFF's place: nothing may take such a file for a NEFF."""
LARGEST_SIMULATED = 512
"""No such file is larger, in bytes: larger ones need not be opened."""
FIRST_NATIVE = (2, 10)
"""First release of torch_neuronx that may be the native backend; those before it need torch_xla."""
_STUB_BYTES = 64
"""A failed compile leaves a `model.neff` of a few bytes; a real one begins with a header of a kilobyte."""


class Layout(StrEnum):
    """Whose folder it is."""

    ASYNC = "torch-neuronx"
    SYNC = "torch-neuronx sync"
    XLA = "torch-xla"


class State(StrEnum):
    """What became of a compile."""

    COMPILED = "compiled"
    FAILED = "failed"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeffName:
    """What the place of an entry says."""

    layout: Layout
    key: str
    """The stack's own key."""
    compiler: str = ""
    """Version of neuronx-cc, where the place names it."""
    flags: str = ""
    """Digest of the compiler's flags, where the place names it."""


def name_of(path: str) -> NeffName | None:
    """Read the place of a TorchNeuron NEFF, relative to its folder, with forward slashes; None for any other."""
    if match := _ASYNC.fullmatch(path):
        is_right = match[3].startswith(match[1] + match[2])
        return NeffName(layout=Layout.ASYNC, key=match[3]) if is_right else None
    if match := _SYNC.fullmatch(path):
        return NeffName(layout=Layout.SYNC, key=match[1]) if match[1] == match[2] else None
    return xla_name(path.removesuffix(f"/{NEFF}")) if path.endswith(f"/{NEFF}") else None


def place_of(key: str) -> str:
    """Give the place of a TorchNeuron NEFF below its folder, by its key on disk: what `name_of` reads."""
    return f"{key}/{key}.neff" if len(key) == 64 else f"{key[:2]}/{key[2:4]}/{key}.neff"


def xla_name(path: str) -> NeffName | None:
    """Read the place of a module's folder of torch-xla; None for any other."""
    parts = path.split("/")
    if len(parts) != 2:
        return None
    compiler, module = _COMPILER.fullmatch(parts[0]), _MODULE.fullmatch(parts[1])
    if compiler is None or module is None:
        return None
    return NeffName(layout=Layout.XLA, key=parts[1], compiler=compiler[1], flags=module[2] or "")


def is_compiler_folder(name: str) -> bool:
    """Whether a folder's name is that of a compiler's version."""
    return _COMPILER.fullmatch(name) is not None


def is_lock(name: str) -> bool:
    """Whether a file's name is that of a lock."""
    return _LOCK.fullmatch(name) is not None


def xla_state(files: Mapping[str, int]) -> State:
    """Judge a module's folder by its files and their sizes."""
    size = files.get(NEFF, 0)
    if DONE in files and size > _STUB_BYTES:
        return State.COMPILED
    if LOG in files or DONE in files or (NEFF in files and size <= _STUB_BYTES):
        return State.FAILED
    # Older releases wrote no mark of success.
    return State.COMPILED if size > _STUB_BYTES else State.UNFINISHED


def version_order(version: str) -> tuple[tuple[int, ...], str]:
    """Give what versions of the compiler are ordered by."""
    numbers = version.partition("+")[0].split(".")
    return tuple(int(number) if number.isdigit() else 0 for number in numbers), version
