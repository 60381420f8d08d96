"""The simulated `torch_neuronx`: torch loads it by its entry point, and it claims the device `neuron`.

It stands in for AWS's package while a program is traced by shapeguard. Nothing here has run on Trainium.
"""

from __future__ import annotations

__version__ = "2.14.3+shapeguard"


def _autoload() -> None:
    """Claim the device; called by torch at the end of its import. Defined above `import torch`, which calls it."""
    from torch_neuronx import _device

    _device.claim()


import torch  # noqa: E402

from torch_neuronx import _C  # noqa: E402,F401
from torch_neuronx._device import claim  # noqa: E402
from torch_neuronx._surface import *  # noqa: E402,F403
from torch_neuronx._surface import _lazy_init  # noqa: E402,F401

claim()
neuron = torch.neuron  # type: ignore[attr-defined]
