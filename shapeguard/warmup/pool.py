"""Worker processes of one machine: warm, each with NeuronCores of its own, killed with all that they started."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from shapeguard.warmup.processes import adopt_orphans, below, carries, end_all, is_dead, resident_bytes
from shapeguard.warmup.values import LOST, Result, Work

CORES = "NEURON_RT_VISIBLE_CORES"
_ROUNDS = 100
"""Looks for what a dead worker left, 10 ms apart: a second is long for what was killed."""


class Pool:
    """A worker process for each try that runs at once; an idle one takes the next."""

    def __init__(self, *, slots: int, cores: int) -> None:
        self._slots = slots
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._free = list(range(cores))
        # What a killed worker leaves behind comes to this process, which ends it.
        adopt_orphans()

    def has_room(self, cores: int) -> bool:
        """Whether a worker and enough NeuronCores are free."""
        return sum(worker.work is not None for worker in self._workers) < self._slots and (len(self._free) >= cores)

    def start(self, work: Work) -> None:
        """Hand a try to an idle worker, or to a new one."""
        worker = next((each for each in self._workers if each.work is None), None) or self._new()
        cores, self._free = self._free[: work.cores], self._free[work.cores :]
        worker.begin(replace(work, env={**os.environ, CORES: _ranges(cores), **work.env}), cores)

    def _new(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def results(self, patience_s: float) -> list[Result]:
        """Wait for an answer, or for a worker that dies."""
        if not self._workers:
            time.sleep(patience_s)
            return []
        found = []
        for key, _ in self._selector.select(patience_s):
            worker: _Worker = key.data
            result = worker.read()
            if worker.is_dead:
                self._remove(worker)
            if result is not None:
                self._give_back(worker)
                found.append(result)
        return found

    def memory(self) -> Mapping[str, int]:
        """Measure the workers with all below them; those that wait for work stand under an empty name."""
        found = {"": 0}
        for worker in self._workers:
            name = worker.work.id if worker.work is not None else ""
            found[name] = found.get(name, 0) + worker.measure()
        return found

    def stop(self, id: str, why: str) -> None:
        """Kill a try's worker and everything below it."""
        for worker in self._workers:
            if worker.work is not None and worker.work.id == id:
                worker.kill(why)

    def close(self) -> None:
        """Kill all workers."""
        for worker in list(self._workers):
            worker.kill("")
            self._remove(worker)
        self._selector.close()

    def _give_back(self, worker: _Worker) -> None:
        self._free = sorted([*self._free, *worker.cores])
        worker.cores = []

    def _remove(self, worker: _Worker) -> None:
        self._selector.unregister(worker.answers)
        worker.bury()
        self._workers.remove(worker)


class _Worker:
    """One worker process and the pipes to it."""

    def __init__(self) -> None:
        theirs_in, orders = os.pipe()
        self.answers, theirs_out = os.pipe()
        command = [sys.executable, "-m", "shapeguard.warmup.worker", str(theirs_in), str(theirs_out)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=(theirs_in, theirs_out), start_new_session=True
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._orders = orders
        self._buffer = b""
        self._below: list[int] = []
        self._why = LOST
        self._peak = 0
        self._began = 0.0
        self.work: Work | None = None
        self.cores: list[int] = []
        self.is_dead = False

    def begin(self, work: Work, cores: list[int]) -> None:
        self.work, self.cores = work, cores
        self._peak, self._began, self._why = 0, time.monotonic(), LOST
        data = msgspec.json.encode(work) + b"\n"
        with contextlib.suppress(BrokenPipeError):  # it has died: its answers end too
            while data:
                data = data[os.write(self._orders, data) :]

    def read(self) -> Result | None:
        """Take what has come; a worker whose pipe has ended gives its try up."""
        data = os.read(self.answers, 1 << 16)
        self._buffer += data
        self.is_dead = not data
        line, mark, rest = self._buffer.partition(b"\n")
        if mark:
            self._buffer = rest
            result = msgspec.json.decode(line, type=Result)
            # What it told in the moment in which it was killed is no end of its own.
            return self._ended(result if result.is_done or self._why == LOST else replace(result, why=self._why))
        if self.is_dead and self.work is not None:
            return self._ended(Result(id=self.work.id, why=self._why))
        return None

    def _ended(self, result: Result) -> Result:
        self.work = None
        wall_s = result.wall_s or round(time.monotonic() - self._began, 3)
        return replace(result, peak_bytes=self._peak, wall_s=wall_s)

    def measure(self) -> int:
        self._below = below(self._process.pid)
        now, most = resident_bytes(self._below)
        self._peak = max(self._peak, most)
        return now

    def kill(self, why: str) -> None:
        self._why = why
        self._below = list({*self._below, *below(self._process.pid)})
        end_all(self._process.pid)

    def bury(self) -> None:
        """Take leave of a dead worker, and end what it left."""
        for each in (self._orders, self.answers):
            os.close(each)
        self._process.wait()
        for _ in range(_ROUNDS):
            # What is dying hands its children on one after the other: one look may miss some on their way to us.
            are_dead = all(map(is_dead, self._below))
            left = [pid for pid in below(os.getpid())[1:] if self._has(pid)]
            for pid in left:
                end_all(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            if are_dead and not left:
                break
            time.sleep(0.01)

    def _has(self, pid: int) -> bool:
        """Whether a process was below this worker; what started in the moment of its death carries its mark."""
        return pid in self._below or _session(pid) == self._process.pid or carries(pid, self._process.pid)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _ranges(cores: list[int]) -> str:
    """Write cores as the runtime reads them: `0-1,4`."""
    parts: list[list[int]] = []
    for core in cores:
        if parts and parts[-1][-1] == core - 1:
            parts[-1].append(core)
        else:
            parts.append([core])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
