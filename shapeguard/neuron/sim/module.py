"""`torch.neuron`: the device module, with the names that TorchNeuron gives it (facts, section 4.1)."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from shapeguard.neuron.sim import streams
from shapeguard.neuron.sim.metrics import GraphMetrics
from shapeguard.neuron.sim.storage import memory

# Memory of one device of a `trn2` instance with two logical cores joined: 96 GiB a chip of 8 cores, 2 used as one.
# Source: AWS's public Trainium2 page. The simulation never refuses an allocation.
_TOTAL_MEMORY_BYTES = 24 * 2**30


class Properties:
    """What `get_device_properties` gives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total_memory = _TOTAL_MEMORY_BYTES

    def __repr__(self) -> str:
        return f"NeuronDeviceProperties(name='{self.name}', total_memory={self.total_memory})"


class NeuronModule(types.ModuleType):
    """The module `torch.neuron`; its functions are bound methods, so that they need no globals."""

    def __init__(self, *, target: str, num_devices: int) -> None:
        super().__init__("torch.neuron", "Simulated Neuron device.")
        self._target = target
        self._num_devices = num_devices
        # Made on first use: a stream can only be made once torch knows the device.
        self._stream: streams.Stream | None = None
        self._default_stream: streams.Stream | None = None
        self.get_dynamo_metrics: Callable[[], list[GraphMetrics]] = list
        self.reset_dynamo_metrics: Callable[[], None] = lambda: None
        self.memory = self
        # `import torch.neuron.x` must fail as for any module without children, not with a strange error.
        self.__path__: list[str] = []

    # Functions in the real module too; the classes are those of `torch_neuronx`.
    def Stream(self, **kwargs: Any) -> streams.Stream:  # noqa: N802
        return streams.Stream(**kwargs)

    def Event(self, enable_timing: bool = False, blocking: bool = False) -> streams.Event:  # noqa: N802
        return streams.Event(enable_timing=enable_timing, blocking=blocking)

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def init(self) -> None:
        return None

    def _lazy_init(self) -> None:
        return None

    def device_count(self) -> int:
        return self._num_devices

    def current_device(self) -> int:
        # One process sees one device: every index is the same one (see docs/fidelity.md).
        return 0

    def set_device(self, device: Any) -> None:
        self._check(device)

    def _check(self, device: Any) -> None:
        index = device if isinstance(device, int) else torch.device(device).index if device is not None else None
        if index is not None and not -1 <= index < self._num_devices:
            raise RuntimeError(f"invalid device ordinal neuron:{index}: {self._num_devices} visible")

    def device(self, spec: Any = None) -> contextlib.AbstractContextManager[None]:
        self._check(spec)
        return contextlib.nullcontext()

    def get_device_name(self, device: Any = 0) -> str:
        return "neuron:0"

    def get_device_properties(self, device: Any = None) -> Properties:
        return Properties(self._target)

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return (int(self._target.removeprefix("trn") or 0), 0)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float32, torch.float16, torch.bfloat16]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        # Nothing: `torch.manual_seed` seeds the host's generator, which is the device's one too (facts 1.3).
        return None

    def seed(self) -> int:
        return torch.default_generator.seed()

    def seed_all(self) -> int:
        return torch.default_generator.seed()

    def initial_seed(self) -> int:
        return torch.default_generator.initial_seed()

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return torch.default_generator.get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        torch.default_generator.set_state(state.cpu())

    def get_rng_state_all(self) -> list[torch.Tensor]:
        return [self.get_rng_state()]

    def set_rng_state_all(self, states: list[torch.Tensor]) -> None:
        for state in states:
            self.set_rng_state(state)

    @contextlib.contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        before = self.current_stream()
        self._stream = stream or before
        try:
            yield
        finally:
            self._stream = before

    def current_stream(self, device: Any = None) -> streams.Stream:
        self._stream = self._stream or self.default_stream()
        return self._stream

    def default_stream(self, device: Any = None) -> streams.Stream:
        self._default_stream = self._default_stream or streams.Stream()
        return self._default_stream

    def set_stream(self, stream: streams.Stream) -> None:
        self._stream = stream

    def synchronize(self, device: Any = None) -> None:
        return None

    def wait_stream(self, stream: streams.Stream) -> None:
        return None

    def wait_event(self, event: streams.Event) -> None:
        return None

    def record_event(self, event: streams.Event | None = None) -> streams.Event:
        return event or streams.Event()

    def query(self) -> bool:
        return True

    def empty_cache(self) -> None:
        return None

    def _sleep(self, cycles: int) -> None:
        return None

    def memory_allocated(self, device: Any = None) -> int:
        return memory.live_bytes

    def max_memory_allocated(self, device: Any = None) -> int:
        return memory.peak_bytes

    memory_reserved = memory_allocated
    max_memory_reserved = max_memory_allocated

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        return max(0, _TOTAL_MEMORY_BYTES - memory.live_bytes), _TOTAL_MEMORY_BYTES

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        memory.peak_bytes = memory.live_bytes

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        memory.total_allocated = memory.live_bytes
        memory.total_freed = 0

    def memory_stats(self, device: Any = None) -> dict[str, Any]:
        bytes_now = {
            "current": memory.live_bytes,
            "peak": memory.peak_bytes,
            "allocated": memory.total_allocated,
            "freed": memory.total_freed,
        }
        return {
            "allocated_bytes": bytes_now,
            "reserved_bytes": bytes_now,
            "active_bytes": bytes_now,
            "num_alloc_retries": 0,
            "num_ooms": 0,
            "num_tensor_frees": memory.num_allocations - memory.num_live,
            "allocation_requests": memory.num_allocations,
        }

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        return f"simulated neuron device: {memory.live_bytes} bytes live, {memory.peak_bytes} at the most"
