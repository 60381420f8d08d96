"""Watches the kernels that torch_neuronx registers from Python: which ATen call is running when something compiles.

`torch.library.Library.impl` is public, and Python kernels get to the dispatcher by no other way. It is wrapped before
torch_neuronx is imported; kernels written in C++ are not seen, and what they compile is described from what they hand
to the compiler alone.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from shapeguard.neuron.sim.storage import ORIGIN
from shapeguard.neuron.sim.torch_private import hide_from_dynamo

_DEVICE_KEYS = ("PrivateUse1", "AutogradPrivateUse1")
_COPIES = ("copy_", "_to_copy")
_TYPE = "neuron"


@dataclass(slots=True, eq=False)
class Running:
    """A call of an operator that is under way."""

    name: str
    """Overload without "aten::"."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    missed: list[Any] = field(default_factory=list)
    """What the cache of sync mode missed for it; described once its result is there."""
    predicted: list[Any] | None = None
    """What the compile model expects of it; made when something of it is new."""


class Calls:
    """The calls under way, a stack for each thread."""

    def __init__(self, site: Callable[[], Any]) -> None:
        self._site = site
        self._threads = threading.local()
        self.registered: set[str] = set()
        """Operators with a kernel that is watched."""
        self.on_call: Callable[[Running, Any], None] | None = None
        """Called with each call and its result, where nothing else tells of new keys."""
        self.on_begin: Callable[[], Any] | None = None
        """Called before each kernel, as long as the package is not followed yet."""
        self.on_missed: Callable[[Running, Any], None] | None = None
        """Called with a call that the cache of sync mode missed something for, and its result."""

    def watch(self) -> None:
        """Wrap what registers kernels; from here on every new one is seen."""
        plain: Any = torch.library.Library.impl

        @functools.wraps(plain)
        def impl(library: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
            key = dispatch_key or getattr(library, "dispatch_key", "")
            if library.ns == "aten" and key in _DEVICE_KEYS and not options.get("with_keyset"):
                fn = self._watched(_short(op_name), fn)
            return plain(library, op_name, fn, dispatch_key, **options)

        torch.library.Library.impl = impl  # type: ignore[assignment]

    def _watched(self, name: str, fn: Any) -> Any:
        if fn is torch.library.fallthrough_kernel or not callable(fn):
            return fn
        self.registered.add(name)
        threads = self._threads
        moves = name in _COPIES

        def kernel(*args: Any, **kwargs: Any) -> Any:
            if self.on_begin is not None:
                self.on_begin()
            stack = threads.__dict__.setdefault("stack", [])
            running = Running(name, args, kwargs)
            stack.append(running)
            result = None
            try:
                result = fn(*args, **kwargs)
                if self.on_call is not None:
                    self.on_call(running, result)
            finally:
                stack.pop()
                if running.missed and self.on_missed is not None:
                    self.on_missed(running, result)
            if moves:
                self._remember_origin(args, result)
            return result

        # Torch looks at what a kernel is called, not at what it takes: no signature has to be kept.
        return hide_from_dynamo(kernel)

    @property
    def running(self) -> Running | None:
        """The innermost call under way in this thread."""
        stack = self._threads.__dict__.get("stack")
        return stack[-1] if stack else None

    def _remember_origin(self, args: tuple[Any, ...], result: Any) -> None:
        """Keep the user's line that brought data to the device: it may own a shape that changes."""
        into = args[0] if isinstance(result, torch.Tensor) and result is args[0] else result
        source = args[1] if into is args[0] and len(args) > 1 else args[0]
        if not (isinstance(into, torch.Tensor) and isinstance(source, torch.Tensor)):
            return
        if into.device.type != _TYPE or source.device.type == _TYPE:
            return
        storage = into.untyped_storage()
        if getattr(storage, ORIGIN, None) is None:
            setattr(storage, ORIGIN, self._site())


def _short(op: Any) -> str:
    name = op if isinstance(op, str) else op.name()
    return str(name).removeprefix("aten::").removesuffix(".default")
