"""Worker processes on this machine."""

from __future__ import annotations

from collections.abc import Mapping

from shapeguard.warmup.executor import Executor, Room
from shapeguard.warmup.pool import Pool
from shapeguard.warmup.values import Result, Work


class LocalExecutor(Executor):
    """A worker process for each try that runs at once."""

    name = "local"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._pool = Pool(slots=room.slots, cores=room.cores)

    def has_room(self, cores: int) -> bool:
        """Whether a worker and enough NeuronCores are free."""
        return self._pool.has_room(cores)

    def start(self, work: Work) -> None:
        """Hand a try to a worker."""
        self._pool.start(work)

    def results(self, patience_s: float) -> list[Result]:
        """Wait for an answer, or for a worker that dies."""
        return self._pool.results(patience_s)

    def memory(self) -> Mapping[str, int]:
        """Measure the workers."""
        return self._pool.memory()

    def stop(self, id: str, why: str) -> None:
        """Kill a try's worker and everything below it."""
        self._pool.stop(id, why)

    def close(self) -> None:
        """Kill all workers."""
        self._pool.close()
