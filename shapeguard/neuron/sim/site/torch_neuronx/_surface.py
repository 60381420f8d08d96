"""The public functions of `torch_neuronx` (facts, section 4.2), as far as the simulated device has them."""

from __future__ import annotations

from shapeguard.neuron.sim.streams import Event as Event
from shapeguard.neuron.sim.streams import Stream as Stream
from torch_neuronx._device import claim

_claimed = claim()
_module = _claimed.module
stream = _module.stream
current_stream = _module.current_stream
default_stream = _module.default_stream
set_stream = _module.set_stream
synchronize = _module.synchronize
device_count = _module.device_count
current_device = _module.current_device
set_device = _module.set_device
device = _module.device
get_device_properties = _module.get_device_properties
empty_cache = _module.empty_cache
memory_stats = _module.memory_stats
memory_allocated = _module.memory_allocated
max_memory_allocated = _module.max_memory_allocated
memory_reserved = _module.memory_reserved
max_memory_reserved = _module.max_memory_reserved
memory_summary = _module.memory_summary
reset_peak_memory_stats = _module.reset_peak_memory_stats
reset_accumulated_memory_stats = _module.reset_accumulated_memory_stats
get_dynamo_metrics = _module.get_dynamo_metrics
reset_dynamo_metrics = _module.reset_dynamo_metrics
StreamContext = _module.stream
get_executed_ops = _claimed.readers.get_executed_ops
get_fallback_ops = _claimed.readers.get_fallback_ops
clear_op_tracking = _claimed.readers.clear_op_tracking


def is_neuron_runtime_initialized() -> bool:
    """The simulated runtime is there as soon as the device is."""
    return True


def _lazy_init() -> None:
    return None
