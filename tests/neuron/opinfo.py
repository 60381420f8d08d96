"""PyTorch's own samples for the operators that TorchNeuron registers, on the device beside the CPU.

Run as a program it takes the number of samples an operator and dtype (0: all) and prints one JSON line: how many calls
and gradients were compared, and what differed.
"""

import json
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

from shapeguard.neuron.model.tables import REGISTERED, REGISTERED_BY_HAND

DTYPES = (torch.float32, torch.int64, torch.bfloat16, torch.bool)
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 1e-2}


def names_of(op):
    return {op.name, op.aten_name, *(alias.name for alias in op.aliases)}


def registered():
    """Give the entries of torch's list that reach an operator of the table by its name."""
    bases = {name.partition(".")[0].strip("_") for name in REGISTERED | REGISTERED_BY_HAND}
    return [op for op in op_db if {name.rpartition(".")[2].strip("_") for name in names_of(op)} & bases]


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        items = [moved(item, device) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    if value == "cpu" or (isinstance(value, torch.device) and value.type == "cpu"):
        return torch.device(device)
    return value


def called(op, sample, device):
    """Give what the operator gives for a sample, and its gradients; or the error as a text."""
    try:
        args = moved((sample.input, *sample.args), device)
        kwargs = moved(dict(sample.kwargs), device)
        torch.manual_seed(0)
        result = op(*args, **kwargs)
        given = [each for each in tensors(result) if each.requires_grad]
        wanted = [each for each in tensors((args, kwargs)) if each.requires_grad]
        grads = ()
        if given and wanted and not any(each.is_complex() for each in given):
            total = sum(each.float().sin().sum() for each in given)
            grads = torch.autograd.grad(total, wanted, allow_unused=True)
        return result, grads
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:150]}" if str(error) else type(error).__name__


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return tensors(list(value.values()))
    return [tensor for item in value for tensor in tensors(item)] if isinstance(value, (list, tuple)) else []


def difference(there, here):
    """Say what differs between a result of the device and one of the CPU; nothing where they are the same."""
    if isinstance(here, str):
        return "" if isinstance(there, str) else f"no error where the CPU has {here}"
    if isinstance(there, str):
        return there
    if isinstance(here, torch.Tensor):
        return tensor_difference(there, here)
    if isinstance(here, (list, tuple)):
        found = [difference(a, b) for a, b in zip(there, here, strict=True)]
        return next((each for each in found if each), "")
    return "" if there == here or there != there else f"{there} instead of {here}"


def tensor_difference(there, here):
    if there.device.type == "cpu" or there.shape != here.shape or there.dtype != here.dtype:
        return f"{there.device.type} {there.dtype} {tuple(there.shape)} instead of {here.dtype} {tuple(here.shape)}"
    close = TOLERANCES.get(here.dtype, 1e-4)
    a, b = there.detach().cpu().resolve_conj(), here.detach().resolve_conj()
    return "" if torch.allclose(a, b, rtol=close, atol=close, equal_nan=True) else "other values"


def compared(op, dtype, most):
    """Compare the samples of one operator and dtype; gives how many there were and what differed."""
    wants_grad = dtype is torch.float32 and op.supports_autograd
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=wants_grad))
    step = max(1, len(samples) // most) if most else 1
    found = []
    for sample in samples[::step]:
        found.append(difference(called(op, sample, "neuron"), called(op, sample, "cpu")))
    return found


def main():
    warnings.filterwarnings("ignore")
    most = int(sys.argv[1])
    only = sys.argv[2:]
    count, wrong = 0, {}
    for op in registered():
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if only and op.name not in only:
            continue
        for dtype in DTYPES:
            if op.supports_dtype(dtype, "cpu"):
                found = compared(op, dtype, most)
                count += len(found)
                bad = [each for each in found if each]
                if bad:
                    wrong[f"{name} {str(dtype).removeprefix('torch.')}"] = [len(bad), *sorted(set(bad))[:3]]
    json.dump({"operators": len(registered()), "samples": count, "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
