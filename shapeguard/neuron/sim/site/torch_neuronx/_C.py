"""The readers of TorchNeuron's native module that the simulated device has (facts, section 3.3)."""

from __future__ import annotations

from torch_neuronx._device import claim

_readers = claim().readers
_get_compilation_cache_stats = _readers._get_compilation_cache_stats
_get_compilation_cache_entries = _readers._get_compilation_cache_entries
_get_all_cache_keys = _readers._get_all_cache_keys
get_neff_info = _readers.get_neff_info
get_neff_cache = _readers.get_neff_cache
put_neff_cache = _readers.put_neff_cache
_clear_compilation_cache = _readers._clear_compilation_cache
_clear_compilation_memory_cache = _readers._clear_compilation_memory_cache
