"""What a tensor of the device cannot become: sparse, quantized or nested ones, which Neuron does not have."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from shapeguard.neuron.sim.device import Device
from shapeguard.neuron.sim.kernels import Kernel
from shapeguard.neuron.sim.torch_private import hide_from_dynamo

_CONVERSIONS = {
    "sparse": """
        _to_sparse _to_sparse.sparse_dim _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc
        sparse_coo_tensor.size sparse_compressed_tensor.comp_plain_value_size
    """.split(),
    "quantized": "quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel".split(),
    "nested": "_nested_tensor_from_tensor_list".split(),
}
# Torch makes these in one piece at the autograd key, before any kernel of a device is asked.
_MADE_ABOVE_AUTOGRAD = """
    _sparse_compressed_tensor_unsafe _sparse_csr_tensor_unsafe _sparse_csc_tensor_unsafe _sparse_bsr_tensor_unsafe
    _sparse_bsc_tensor_unsafe
""".split()
_KEYS = {
    "SparsePrivateUse1": "sparse",
    "SparseCsrPrivateUse1": "sparse",
    "QuantizedPrivateUse1": "quantized",
}


def kernels(device: Device) -> dict[str, Kernel]:
    """Give the kernels by overload name."""
    return {name: _refusing(kind) for kind, names in _CONVERSIONS.items() for name in names}


def apply() -> list[torch.library.Library]:
    """Refuse whatever else would work on such tensors, and giving the memory away through DLPack."""
    aten = torch.library.Library("aten", "IMPL")
    for name in _MADE_ABOVE_AUTOGRAD:
        for above in ("AutogradPrivateUse1", "PrivateUse1", "SparseCsrPrivateUse1"):
            aten.impl(name, hide_from_dynamo(_refusing("sparse")), above)
    rest = torch.library.Library("_", "IMPL")
    for key, kind in _KEYS.items():
        rest.fallback(hide_from_dynamo(_refusing(kind)), key)
    _refuse_dlpack()
    return [aten, rest]


def _refusing(kind: str) -> Kernel:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"neuron has no {kind} tensors: keep them on the CPU")

    return refuse


def _refuse_dlpack() -> None:
    """Torch would give a capsule with the made-up address, which a reader would take for memory."""
    plain_capsule, plain_method = torch.utils.dlpack.to_dlpack, torch.Tensor.__dlpack__

    def check(tensor: Any) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.device.type == "neuron":
            raise RuntimeError("a neuron tensor cannot be given away through DLPack: move it to the CPU first")

    def to_dlpack(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        check(tensor)
        return plain_capsule(tensor, *args, **kwargs)

    def __dlpack__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        check(self)
        return plain_method(self, *args, **kwargs)

    torch.utils.dlpack.to_dlpack = to_dlpack  # type: ignore[assignment]
    torch.Tensor.__dlpack__ = __dlpack__  # type: ignore[method-assign]
