"""Every private name of torch that the simulated device stands on, in one place, probed before anything is claimed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch

from shapeguard.core.errors import DeviceError

_NEEDED = (
    "utils.backend_registration._setup_privateuseone_for_python_backend",
    "_C._acc.DeviceGuard",
    "_C._autograd.DeviceType.PrivateUse1",
    "_C._from_dlpack",
    "_C.DispatchKeySet",
    "_C.DispatchKey.CPU",
    "_C._dynamo.eval_frame.set_code_exec_strategy",
    "_C._dynamo.eval_frame._FrameExecStrategy",
    "_C._dynamo.eval_frame._FrameAction",
    "ops.aten.as_strided.default._handle",
    "ops.aten.as_strided.default._op",
    "_C.StorageBase.nbytes",
    "library.fallthrough_kernel",
    "UntypedStorage",
    "utils._python_dispatch._disable_current_modes",
)


def probe() -> None:
    """Raise `DeviceError` naming the first private name that this torch does not have."""
    for name in _NEEDED:
        try:
            reduce(getattr, name.split("."), torch)
        except AttributeError as error:
            raise DeviceError(
                f"torch {torch.__version__} has no `torch.{name}`, which the simulated device needs",
                hint="install torch 2.13 or 2.14",
            ) from error


def setup(name: str, module: object) -> None:
    """Claim the PrivateUse1 key under `name`; a process can do it only once."""
    from torch.utils import backend_registration

    kind = torch._C._autograd.DeviceType.PrivateUse1

    class Guard(torch._C._acc.DeviceGuard):
        # Torch asks several times an operator: an iterator that never ends answers without a Python frame.
        type_ = itertools.repeat(kind).__next__  # type: ignore[assignment]

    backend_registration._setup_privateuseone_for_python_backend(name, backend_module=module, device_guard=Guard())
    # Tensors and modules have theirs by now; TorchNeuron gives storages `neuron()` and `is_neuron` too.
    backend_registration.generate_methods_for_privateuse1_backend(
        for_tensor=False, for_module=False, for_packed_sequence=False, for_storage=True
    )
    # Else `backward()` goes on in a thread of the device and comes back, which takes longer than a small graph itself,
    # and there the user's line is on no stack. Torch has this by thread: others keep its default.
    torch.autograd.set_multithreading_enabled(False)


CPU_KEYS: Any = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
"""What an operator is redispatched with where torch's own kernel for the CPU only moves metadata (views)."""

from_dlpack: Callable[[object], torch.Tensor] = torch._C._from_dlpack


def cpu_kernel(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """Give the CPU kernel of an operator as a function that doesn't look at the tensors' device."""
    redispatch = op._handle.redispatch_boxed
    keys = CPU_KEYS

    def call(*args: Any, **kwargs: Any) -> Any:
        return redispatch(keys, *args, **kwargs)

    return call


def direct(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """Give torch's own function behind an overload: without the Python frame that calling the overload takes."""
    return op._op


def hide_from_dynamo(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep Dynamo's frame hook off this function and all that it calls.

    Eager operators between graph breaks run while the hook is on: without this Dynamo would compile the simulator.
    Unlike `torch._dynamo.disable` this costs nothing a call and does not import `torch._dynamo`.
    """
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    code = getattr(function, "__code__", None)
    if code is not None:
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
    return function


def skip_frames_of(function: Any) -> None:
    """Keep Dynamo's frame hook off this function, but not off what it calls."""
    frames = torch._C._dynamo.eval_frame
    strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
    frames.set_code_exec_strategy(function.__code__, strategy)


def without_modes() -> Any:
    """Give a context in which tensors are what they are: AOTAutograd calls compilers with its fake mode on."""
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def overload(name: str) -> torch._ops.OpOverload | None:
    """Give the aten overload of that name ("add.Tensor", "relu"), or None where this torch has none."""
    packet, _, variant = name.partition(".")
    try:
        found = getattr(getattr(torch.ops.aten, packet), variant or "default")
    except AttributeError:
        return None
    assert isinstance(found, torch._ops.OpOverload)
    try:
        # `torch.ops` also shows overloads of TorchScript (`div(Scalar, Scalar)`) that the dispatcher has never seen.
        torch._C._dispatch_find_schema_or_throw(f"aten::{packet}", variant)
    except RuntimeError:
        return None
    return found
