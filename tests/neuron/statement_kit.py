"""Statements that a device must run as any other does: each takes a device and gives tensors, numbers or strings.

Each runs on the CPU and on `neuron`; what differs is said, and so is what stays alive after it.
"""

import gc
import json
import sys
import warnings

import torch
from torch import nn

STATEMENTS = {}


def statement(function):
    STATEMENTS[function.__name__] = function
    return function


def numbers(dev, *shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(dev)


def gradients(module, *inputs):
    inputs = [value.requires_grad_() if value.is_floating_point() else value for value in inputs]
    result = module(*inputs)
    result.sin().sum().backward()
    found = [value.grad for value in inputs if value.is_floating_point()]
    found += [parameter.grad for parameter in module.parameters()] if isinstance(module, nn.Module) else []
    return (result.detach(), *found)


def made(dev, module):
    with torch.no_grad():
        for place, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers("cpu", *parameter.shape, seed=place) * 0.3)
    return module.to(dev)


def same(there, here, has_values):
    if isinstance(here, (list, tuple)):
        return len(there) == len(here) and all(same(a, b, has_values) for a, b in zip(there, here, strict=True))
    if not isinstance(here, torch.Tensor):
        return there == here or (not has_values and isinstance(here, (bool, int, float, list)))
    if there.shape != here.shape or there.dtype != here.dtype:
        return False
    if not has_values:
        return True
    a, b = there.detach().cpu(), here.detach().cpu()
    return (
        torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        if a.is_floating_point() or a.is_complex()
        else torch.equal(a, b)
    )


def outcome(function, has_values):
    try:
        if not same(function("neuron"), function("cpu"), has_values):
            return "differs"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    gc.collect()
    live, tensors = torch.neuron.memory_allocated(), num_live()
    return "" if live == tensors == 0 else f"{live} bytes in {tensors} storages stay live"


def num_live():
    stats = torch.neuron.memory_stats()
    return stats["allocation_requests"] - stats["num_tensor_frees"]


def refused(function, *words):
    """Tell whether it raises, with a message that has these words."""
    try:
        function()
    except Exception as error:
        return all(word in str(error) for word in words)
    return False


def compiled(dev, function, **settings):
    """Compile for the device; on the CPU run it as it is."""
    return function if dev == "cpu" else torch.compile(function, backend="neuron", **settings)


def main():
    warnings.filterwarnings("ignore")
    has_values = sys.argv[1] == "cpu"
    names = sys.argv[2:] or list(STATEMENTS)
    json.dump({name: outcome(STATEMENTS[name], has_values) for name in names}, sys.stdout)
