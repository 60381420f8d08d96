"""How Dynamo treats regions for Neuron: one graph for each shape, and a word when it gives up."""

from __future__ import annotations

import functools
import sys
from types import MethodType
from typing import Any

import torch

from shapeguard.core.events import Outcome
from shapeguard.neuron.sim.backend import Backend, neuron_or_default
from shapeguard.neuron.sim.device import NAME
from shapeguard.neuron.sim.torch_private import skip_frames_of


def install(backend: Backend) -> None:
    """Make `torch.compile` follow Neuron's rules for regions of this backend; nobody's settings are changed."""
    plain = torch.compile
    chooser = neuron_or_default(backend)

    @functools.wraps(plain)
    def compile(model: Any = None, **kwargs: Any) -> Any:
        watch_limit(backend)
        model = unwatched(model)
        if kwargs.get("backend") is None:
            kwargs["backend"] = chooser
        elif kwargs["backend"] != NAME:
            return plain(model, **kwargs)
        if kwargs.get("dynamic") is None and backend.device.policy.recompiles_on_second_shape:
            # 2.14 compiles anew for each shape. `dynamic=False` asks Dynamo for just that, for this region only:
            # the process-wide `automatic_dynamic_shapes` stays as the user has it.
            kwargs["dynamic"] = False
        return followed(plain(model, **kwargs), model, backend)

    torch.compile = compile


def followed(compiled: Any, model: Any, backend: Backend) -> Any:
    """Give a compiled function whose calls still begin steps when it runs eagerly after the recompile limit.

    No region tells of them then. A module tells by itself.
    """
    code = getattr(model, "__code__", None)
    if code is None or isinstance(compiled, torch.nn.Module):
        return compiled
    begins, is_compiling = backend.device.sink.region_begins, torch.compiler.is_compiling

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_compiling() and id(code) in backend.over_limit:
            begins(None)
        return compiled(*args, **kwargs)

    # Dynamo must look at what is called, not at this frame: all compiled functions share its code.
    skip_frames_of(call)
    return call


def unwatched(model: Any) -> Any:
    """Give what a watching wrapper stands for: a bound `model.__call__` is compiled as torch's own."""
    plain = getattr(getattr(model, "__func__", None), "_shapeguard_plain", None)
    return MethodType(plain, model.__self__) if plain is not None else model


@functools.cache
def watch_limit(backend: Backend) -> None:
    """Write down where Dynamo's recompile limit is reached: from there the code object runs eagerly."""
    from torch._dynamo import convert_frame

    plain = convert_frame.exceeds_recompile_limit
    told = backend.over_limit

    @functools.wraps(plain)
    def exceeds_recompile_limit(cache_size: Any, compile_id: Any) -> Any:
        exceeded, kind = plain(cache_size, compile_id)
        frame = sys._getframe(1)
        while "compiler_fn" not in frame.f_locals and frame.f_back is not None:
            # Another watch may stand in between.
            frame = frame.f_back
        code = frame.f_locals.get("code")
        if exceeded and id(code) not in told and is_neurons(frame.f_locals.get("compiler_fn"), backend):
            told.add(id(code))
            # The step that this call begins is of no region any more.
            backend.device.sink.region_begins(None)
            backend.device.sink.emit(
                {
                    "type": "compile",
                    "kind": "region",
                    "outcome": Outcome.LIMIT,
                    "key": "",
                    "region": 0,
                    "code_object": code,
                    "inputs": [],
                    "constants": [],
                    "guard": str(frame.f_locals.get("recompile_reason") or "").split("  #")[0].strip(),
                    "limit": int(getattr(torch._dynamo.config, kind)),
                    "nodes": 0,
                }
            )
        return exceeded, kind

    convert_frame.exceeds_recompile_limit = exceeds_recompile_limit


def is_neurons(compiler: Any, backend: Backend) -> bool:
    """Tell whether a chain of Dynamo's wrappers ends in our backend."""
    seen = 0
    while compiler is not None and seen < 10:
        name = getattr(compiler, "compiler_name", None)
        if compiler is backend or name == NAME or getattr(compiler, "__name__", "") == NAME:
            return True
        compiler = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(compiler, "compiler_fn", None)
        seen += 1
    return False
