"""Runs a compiled graph as one unit on the inner tensors: no operator of it is counted by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import fx

from shapeguard.neuron.sim.device import NAME, Device, leave
from shapeguard.neuron.sim.meta import runner, settle
from shapeguard.neuron.sim.neff_cache import Entry
from shapeguard.neuron.sim.ops.values import count_in_bins
from shapeguard.neuron.sim.random_state import replacement
from shapeguard.neuron.sim.storage import Tensor, unwrap


def executable(graph: fx.GraphModule, device: Device, *, kind: str, entry: Entry) -> Callable[..., Any]:
    """Give a function of outer tensors that runs the graph on the device's inner side; each run uses its NEFF."""
    keeps_values = device.is_meta and not _has_other_graphs(graph)
    inner = _on_inner(graph, device, keeps_values=keeps_values)
    run = inner.forward

    begins, hit = device.sink.region_begins, device.counter.neffs.hit

    def call(*args: Any) -> Any:
        if kind != "backward":
            begins(kind == "forward")
        hit(entry)
        results = run(*[_enter(device, value, keeps_values=keeps_values) for value in args])
        if device.policy.returns_to_host and _are_on_host(args):
            return results
        return leave(results)

    return call


def _are_on_host(args: tuple[Any, ...]) -> bool:
    """Tell whether there are tensors among the arguments, and none of them on the device."""
    devices = {value.device.type for value in args if isinstance(value, Tensor)}
    return bool(devices) and NAME not in devices


def _enter(device: Device, value: Any, *, keeps_values: bool) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.device.type == NAME:
        inner = unwrap(value)
        return inner if keeps_values or inner.device == device.inner else inner.to(device.inner)
    if not device.policy.copies_cpu_inputs and value.dim():
        raise RuntimeError(
            f"an input of a graph compiled for neuron is on {value.device}, and "
            "TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY=1 forbids to copy it"
        )
    return settle(value) if keeps_values else value.to(device.inner)


def _has_other_graphs(graph: fx.GraphModule) -> bool:
    """Tell whether it calls graphs inside of it: torch runs those, and wants all their tensors in one place."""
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    return any(isinstance(target, torch._ops.HigherOrderOperator) for target in targets)


@cache
def _runner(device: Device, op: torch._ops.OpOverload) -> Callable[..., Any]:
    """Give what runs an operator where small whole numbers have values and all else has none."""
    return runner(device, op)


def _on_inner(graph: fx.GraphModule, device: Device, *, keeps_values: bool = False) -> fx.GraphModule:
    """Give a copy of the graph in which the device is the inner one and literal tensors are inner ones."""
    root = torch.nn.Module()
    replaced = fx.Graph()
    output = replaced.graph_copy(graph.graph, {})
    replaced.output(output)
    for node in replaced.nodes:
        node.args = fx.node.map_aggregate(node.args, lambda value: _place(value, device))
        node.kwargs = fx.node.map_aggregate(node.kwargs, lambda value: _place(value, device))
        if node.op == "get_attr":
            _copy_attribute(graph, root, str(node.target), device, keeps_values=keeps_values)
        elif node.op == "call_function":
            node.target = _target(node.target, device, keeps_values=keeps_values)
    return fx.GraphModule(root, replaced)


_COLLECTIVES = ("_c10d_functional", "_dtensor")


def _target(target: Any, device: Device, *, keeps_values: bool) -> Any:
    """Give what stands for a function of the graph on inner tensors."""
    if getattr(target, "namespace", "") in _COLLECTIVES:
        return _collective(target, device)
    if target is torch.ops.aten.histc.default:
        return count_in_bins
    if (ours := replacement(target)) is not None:
        return ours
    if keeps_values and isinstance(target, torch._ops.OpOverload):
        return _runner(device, target)
    return target


def _collective(op: torch._ops.OpOverload, device: Device) -> Callable[..., Any]:
    """Give a collective of a graph: groups know the device only, so its tensors go out and its results come in again.

    It belongs to the graph and is not counted by itself.
    """
    wait = torch.ops._c10d_functional.wait_tensor.default

    def run(*args: Any, **kwargs: Any) -> Any:
        if op is wait:
            return args[0]
        with device.counter.paused():
            result = op(*leave(args), **kwargs)
            return fx.node.map_aggregate(result, lambda value: unwrap(wait(value)))

    run.__name__ = op.name().replace("::", "_").replace(".", "_")
    return run


def _place(value: Any, device: Device) -> Any:
    return device.inner if isinstance(value, torch.device) and value.type == NAME else value


def _copy_attribute(source: Any, root: torch.nn.Module, path: str, device: Device, *, keeps_values: bool) -> None:
    value: Any = source
    for part in path.split("."):
        value = getattr(value, part)
    if isinstance(value, fx.GraphModule):
        value = _on_inner(value, device)
    elif isinstance(value, Tensor) and value.device.type == NAME:
        value = unwrap(value)
    elif isinstance(value, Tensor) and device.is_meta:
        value = settle(value) if keeps_values else value.to("meta")
    where = root
    *folders, name = path.split(".")
    for part in folders:
        if not hasattr(where, part):
            where.add_module(part, torch.nn.Module())
        where = getattr(where, part)
    if isinstance(value, Tensor):
        where.register_buffer(name, value, persistent=False)
    else:
        setattr(where, name, value)
