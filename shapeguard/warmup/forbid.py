"""`shapeguard.forbid_compiles`: in a serving process a compile at request time raises, or is logged, with its cause.

On the simulated device what has no compiled file is refused before it would compile. Elsewhere torch tells when Dynamo
begins a graph: call it after the service's own first requests, which build the graphs there are. Where TorchNeuron's
counters can be read, a graph whose file is found on disk is no compile; that the compiler ran is then known afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

from shapeguard.checks.watch import Compiled, EventWatch
from shapeguard.core.errors import UsageError
from shapeguard.core.forbid import GATE, RAISE, VARIABLE, WARN, CompileForbiddenError, mode_of
from shapeguard.core.graphs import EAGER_KINDS
from shapeguard.lock.observe import inputs_of
from shapeguard.runs.guards import from_guard
from shapeguard.runs.lines import Reader
from shapeguard.runs.tracks import text_of

_DYNAMO = "torch._dynamo"


class Forbidding(AbstractContextManager["Forbidding"]):
    """Compiling is forbidden from here on; as a context manager, until its end."""

    def __init__(self, before: str) -> None:
        self._before = before

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let everything be as it was before."""
        GATE.mode = self._before


def forbid_compiles(action: str = RAISE) -> Forbidding:
    """Have a compile raise `shapeguard.CompileForbiddenError`, or be logged where `action` is `"warn"`.

    Holds for this process until its end, or for a `with` block.
    """
    if action not in (RAISE, WARN):
        raise UsageError(f"forbid_compiles({action!r}): an action is {RAISE!r} or {WARN!r}")
    before, GATE.mode = GATE.mode, action
    _arm(os.environ)
    return Forbidding(before)


def follow_variable(environment: Mapping[str, str]) -> None:
    """Forbid what `SHAPEGUARD_FORBID_COMPILES` says, if it says anything; torch is not imported for it."""
    mode = mode_of(environment.get(VARIABLE, ""))
    if not mode:
        return
    GATE.mode = mode
    if _DYNAMO in sys.modules or _own_events(environment) is not None:
        _arm(environment)
    elif not any(isinstance(each, _WhenLoaded) for each in sys.meta_path):
        sys.meta_path.insert(0, _WhenLoaded(lambda: _arm(environment)))


def _own_events(environment: Mapping[str, str]) -> Path | None:
    """Give the event file of this process where the simulated device is in it."""
    folder = environment.get("SHAPEGUARD_RUN_DIR", "")
    if not folder or "torch_neuronx" not in sys.modules:
        return None
    return Path(folder) / f"rank-{int(environment.get('RANK') or 0)}.pid-{os.getpid()}.jsonl"


def _arm(environment: Mapping[str, str]) -> None:
    events = _own_events(environment)
    if events is not None and events.parent.is_dir():
        GATE.explain = lambda: _cause(events)
        return
    if find_spec("torch") is None:
        return
    handler = import_module(f"{_DYNAMO}.callback").callback_handler
    if _began not in handler.start_callbacks:
        handler.register_start_callback(_began)
        handler.register_end_callback(_ended)


def _cause(events: Path) -> str:
    """Say of the compile that was written down last what it is, why it came, and at which line."""
    with events.open("rb") as stream:
        compiles = Reader().process(stream).compiles
    last = next((each for each in reversed(compiles) if each.kind != "region"), None)
    if last is None:
        return ""
    region = next((each for each in compiles if each.kind == "region" and each.region == last.region), last)
    graph = Compiled(name=last.name, number=last.n, region=last.region)
    named, _, why = EventWatch(events).causes([graph])[0].partition(": ")
    why = why.replace("compiled for the first time", "never needed before")
    if last.kind not in EAGER_KINDS:
        # Refused, it is no graph, and would go by the name that the backend gave it.
        named = " ".join([last.kind, last.model or region.model, *inputs_of(region.inputs)[:3]])
    return f"{named}: {why}"


_counted: list[int] = []
"""What TorchNeuron had compiled when Dynamo last began; empty where its counters cannot be read."""


def _began(args: Any) -> None:
    """Dynamo begins to compile a frame."""
    _counted[:] = _num_compilations()
    if GATE.mode and not _counted:
        _refuse(_reason(sys._getframe(1)))


def _ended(args: Any) -> None:
    now = _num_compilations()
    if GATE.mode and now and _counted and now[0] > _counted[0]:
        _refuse(_reason(sys._getframe(1)))


def _num_compilations() -> list[int]:
    neuron = sys.modules.get("torch_neuronx")
    stats = getattr(getattr(neuron, "_C", None), "_get_compilation_cache_stats", None)
    found = stats() if callable(stats) else None
    return [int(found["total_compilations"])] if isinstance(found, Mapping) and "total_compilations" in found else []


def _refuse(why: str) -> None:
    GATE.explain = lambda: why
    if GATE.mode == WARN:
        GATE.tell(why)
        return
    plain = import_module(f"{_DYNAMO}.exc").ShortenTraceback
    GATE.refuse(why, _error(plain))


def _error(plain: type[Exception]) -> type[CompileForbiddenError]:
    """Give the error as one that Dynamo hands to the program as it is."""

    def init(self: Exception, message: str) -> None:
        plain.__init__(self, message, first_useful_frame=None)  # type: ignore[call-arg]

    return type(CompileForbiddenError.__name__, (CompileForbiddenError, plain), {"__init__": init})


def _reason(frame: FrameType | None) -> str:
    """Read from Dynamo's own frame what it compiles, and which guard failed."""
    while frame is not None:
        if frame.f_code.co_name == "_compile" and "recompile_reason" in frame.f_locals:
            code, guard = frame.f_locals["code"], str(frame.f_locals["recompile_reason"] or "")
            inside = os.path.relpath(code.co_filename)
            file = code.co_filename if inside.startswith("..") else inside
            what = f"{code.co_name} ({file}:{code.co_firstlineno})"
            return f"{what}: {text_of(from_guard(guard)).strip(' →') or guard if guard else 'never needed before'}"
        frame = frame.f_back
    return "a graph"


class _WhenLoaded(MetaPathFinder):
    """Does something once Dynamo is imported, which a process may do late or never."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Give Dynamo's own spec, with a loader that goes on with ours."""
        if name != _DYNAMO:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self._then)
        return spec


class _Then(Loader):
    """A loader that does something when its module is there."""

    def __init__(self, plain: Loader, then: Callable[[], None]) -> None:
        self._plain = plain
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the plain loader."""
        return self._plain.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then ours."""
        self._plain.exec_module(module)
        self._then()
