"""Claims torch's PrivateUse1 key for the simulated device `neuron`; a process can do it only once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from shapeguard.core.events import Sink
from shapeguard.neuron.model.policy import Policy
from shapeguard.neuron.model.tables import ON_HOST_BY_HAND
from shapeguard.neuron.sim import autocast, collectives, dynamo, environment, kernels, patches, torch_private
from shapeguard.neuron.sim.backend import Backend
from shapeguard.neuron.sim.device import NAME, Device
from shapeguard.neuron.sim.fallback import make_fallback
from shapeguard.neuron.sim.metrics import metric_tables
from shapeguard.neuron.sim.module import NeuronModule
from shapeguard.neuron.sim.ops import attention, linear, memory, recurrent, refused, values, views
from shapeguard.neuron.sim.readers import Readers
from shapeguard.neuron.sim.torch_private import hide_from_dynamo, overload

_LIBRARIES: list[torch.library.Library] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What there is of the device in this process."""

    device: Device
    module: NeuronModule
    backend: Backend
    readers: Readers
    at_end: Callable[[], None] | None
    """Writes the metric tables that were asked for, when the process ends."""


def register(
    *,
    sink: Sink,
    policy: Policy,
    inner: Literal["cpu", "meta"] = "cpu",
    num_devices: int = 1,
    is_alone: bool = False,
) -> Claimed:
    """Make `neuron` a device of torch in this process; events go to `sink`.

    `is_alone`: process groups work without any other rank, as a simulated world.

    Raises `DeviceError` where this torch lacks a private name that the device stands on.
    """
    torch_private.probe()
    device = Device(inner=inner, sink=sink, policy=policy, num_devices=num_devices)
    module = NeuronModule(target=policy.target, num_devices=num_devices)
    torch_private.setup(NAME, module)
    sys.modules["torch.neuron"] = module
    _register_kernels(device)
    _register_autocast()
    patches.apply(module, device.inner)
    group = collectives.register(device, is_alone=is_alone)
    if group is not None:
        _LIBRARIES.append(group)
    backend = Backend(device)
    module.get_dynamo_metrics = lambda: list(backend.metrics)
    module.reset_dynamo_metrics = backend.metrics.clear
    dynamo.install(backend)
    environment.follow(device)
    _say_what_is_not_simulated(device)
    return Claimed(
        device=device,
        module=module,
        backend=backend,
        readers=Readers(device),
        at_end=metric_tables(os.environ, backend.all_metrics),
    )


def _say_what_is_not_simulated(device: Device) -> None:
    if device.policy.concatenates:
        device.tell_once(
            "concatenation",
            "TORCH_NEURONX_ENABLE_CONCATENATION=1: fused graphs come on top of these counts; which depends on timing",
        )


def _register_kernels(device: Device) -> None:
    aten = torch.library.Library("aten", "IMPL")
    found = kernels.table_kernels(device)
    for part in (views, memory, values, linear, attention, recurrent, refused):
        found.update(part.kernels(device))
    for name, kernel in found.items():
        aten.impl(name, hide_from_dynamo(kernel), "PrivateUse1")
    aten.impl("contiguous", hide_from_dynamo(memory.contiguous), "AutogradPrivateUse1")
    for key in ("PrivateUse1", "AutogradPrivateUse1"):
        aten.impl("scaled_dot_product_attention", hide_from_dynamo(attention.attention), key)
    for part in (linear, attention, recurrent):
        for name, kernel in part.inner_kernels().items():
            # Torch never brings these to a tensor of the host; only compiled graphs do, run on the inner side.
            aten.impl(name, hide_from_dynamo(kernel), "CPU")
    for name, kernel in memory.pinned().items():
        aten.impl(name, hide_from_dynamo(kernel), "CPU")
    fallback = make_fallback(device)
    for name in ON_HOST_BY_HAND:
        op = overload(name)
        if op is not None:
            aten.impl(name, hide_from_dynamo(partial(fallback, op)), "PrivateUse1")
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(fallback, "PrivateUse1")
    _LIBRARIES.extend((aten, rest, *refused.apply()))


def _register_autocast() -> None:
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    for name, kernel in autocast.kernels().items():
        aten.impl(name, hide_from_dynamo(kernel), "AutocastPrivateUse1")
    _LIBRARIES.extend((aten, rest))
