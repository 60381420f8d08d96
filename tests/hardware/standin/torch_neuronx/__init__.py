"""Stands in for AWS's torch_neuronx: the names and the manners that are known of it, over the simulated device.

The adapter for hardware is tried on this. Nothing of shapeguard's recording is connected here: what the adapter writes
down it learns from the names below, as on Trainium. `STANDIN_WITHOUT` names some to take away.
"""

from __future__ import annotations

__version__ = "2.14.3"


def _autoload() -> None:
    """Called by torch at the end of its import; importing the package has done it all."""


import os  # noqa: E402

import torch  # noqa: E402,F401

from torch_neuronx import _C, metrics  # noqa: E402
from torch_neuronx._device import claimed as _claimed  # noqa: E402
from torch_neuronx._device import synchronize  # noqa: E402,F401

neuron = _claimed.module
device_count = _claimed.module.device_count
get_device_properties = _claimed.module.get_device_properties
get_dynamo_metrics = _claimed.module.get_dynamo_metrics
get_executed_ops = _claimed.readers.get_executed_ops
get_fallback_ops = _claimed.readers.get_fallback_ops

for _name in os.environ.get("STANDIN_WITHOUT", "").split():
    _owner, _, _last = _name.rpartition(".")
    _where = {"": globals(), "_C": _C.__dict__, "metrics": metrics.__dict__}[_owner]
    _where.pop(_last, None)
