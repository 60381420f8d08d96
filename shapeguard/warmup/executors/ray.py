"""Workers of a Ray cluster: the project's folder goes there, records and compiled files come back."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from shapeguard.cache import codec
from shapeguard.cache.location import make_below
from shapeguard.core.errors import CacheError, DeviceError
from shapeguard.core.neffs import name_of
from shapeguard.warmup.executor import Executor, Room
from shapeguard.warmup.pool import Pool
from shapeguard.warmup.values import LOST, TIMEOUT, Result, Work

_CORES = "neuron_cores"
"""What Ray calls the cores of Trainium machines; it sets NEURON_RT_VISIBLE_CORES by itself."""
_LEFT_AT_HOME = [".git", ".shapeguard", ".venv", "__pycache__"]
_CARRIED = ("SHAPEGUARD_", "NEURON_", "TORCH_", "HF_", "TRANSFORMERS_", "OMP_")
"""Variables of this process that go along."""
_LOOK_S = 0.05


class RayExecutor(Executor):
    """A task for each try; Ray says where, and holds back what has no room."""

    name = "ray"
    is_here: ClassVar[bool] = False

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._ray = _ray()
        # Ray prints of workers that died to standard output, which belongs to the report.
        sys.stdout.flush()
        self._stdout = os.dup(1)
        os.dup2(2, 1)
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect(room)
        self._has_cores = bool(self._ray.cluster_resources().get(_CORES))
        self._attempt = self._ray.remote(max_retries=0)(attempt)
        self._tasks: dict[Any, Work] = {}
        self._reasons: dict[str, str] = {}
        self._sent: dict[str, Any] = {}
        self._token: Path | None = None
        """A file by which other machines see whether they share the folder of compiled files."""

    def _connect(self, room: Room) -> None:
        """Join the cluster of RAY_ADDRESS, or start one of this machine."""
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if not os.environ.get("RAY_ADDRESS"):
            settings |= {"num_cpus": room.slots, "include_dashboard": False}
        try:
            self._ray.init(runtime_env={"working_dir": str(room.root), "excludes": _LEFT_AT_HOME}, **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            said = str(error).strip().splitlines()[0]
            raise DeviceError(f"no Ray cluster can be reached: {said}", hint="see RAY_ADDRESS") from error

    def has_room(self, cores: int) -> bool:
        """Whether fewer tries are there than were asked for."""
        return len(self._tasks) < self.room.slots

    def start(self, work: Work) -> None:
        """Send a try."""
        root = Path(work.neff_dir)
        if self._token is None:
            self._token = root / f".{secrets.token_hex(8)}.here"
            self._token.touch()
        carried = {name: value for name, value in os.environ.items() if name.startswith(_CARRIED)}
        needs = {_CORES: float(work.cores)} if self._has_cores else {}
        task = self._attempt.options(num_cpus=1, resources=needs).remote(
            msgspec.json.encode(replace(work, env={**carried, **work.env})),
            self._token.name,
            [(place, self._object(root, place)) for place in work.files],
        )
        self._tasks[task] = work

    def _object(self, root: Path, place: str) -> Any:
        """Give a compiled file as an object of the cluster, which is sent once."""
        if place not in self._sent:
            self._sent[place] = self._ray.put((root / place).read_bytes())
        return self._sent[place]

    def results(self, patience_s: float) -> list[Result]:
        """Wait for a task."""
        if not self._tasks:
            time.sleep(patience_s)
            return []
        ready, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=patience_s)
        return [self._result(task, self._tasks.pop(task)) for task in ready]

    def _result(self, task: Any, work: Work) -> Result:
        errors = self._ray.exceptions
        try:
            return msgspec.msgpack.decode(self._ray.get(task), type=Result)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            return Result(id=work.id, why=f"Ray: {str(error).strip().splitlines()[-1]}")
        except errors.RayError:
            # Its worker or its machine is gone, or it was told to stop.
            return Result(id=work.id, why=self._reasons.pop(work.id, LOST))

    def stop(self, id: str, why: str) -> None:
        """Cancel a task."""
        for task, work in self._tasks.items():
            if work.id == id:
                self._reasons[id] = why
                self._ray.cancel(task, force=True)

    def close(self) -> None:
        """Cancel what runs, and leave the cluster."""
        for task in self._tasks:
            with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
                self._ray.cancel(task, force=True)
        if self._token is not None:
            self._token.unlink(missing_ok=True)
        if self._is_ours:
            self._ray.shutdown()
        sys.stdout.flush()
        os.dup2(self._stdout, 1)
        os.close(self._stdout)


def attempt(data: bytes, token: str, files: list[tuple[str, Any]]) -> bytes:
    """Run one try on the machine of a Ray worker, in a process below it, which ends with it.

    Where the folder of compiled files is one that this machine shares, the file `token` in it says so.
    """
    work = msgspec.json.decode(data, type=Work)
    with tempfile.TemporaryDirectory(prefix="shapeguard-") as scratch:
        is_shared = (Path(work.neff_dir) / token).is_file()
        root = Path(work.neff_dir) if is_shared else Path(scratch, "neffs")
        if not is_shared:
            root.mkdir()
            _lay_out(root, dict(files))
        there = replace(
            work,
            root=str(Path.cwd()),
            folder=str(Path(scratch, "run")),
            neff_dir=str(root),
            env={**work.env, **_moved(work, root, Path(scratch))},
        )
        result = _run(there)
        return msgspec.msgpack.encode(result if is_shared else replace(result, neffs=_packed(result, root, work.files)))


def _moved(work: Work, root: Path, scratch: Path) -> dict[str, str]:
    """Give the variables that name folders of the machine that sent the try, for this one."""
    ours = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(root), "TORCH_NEURONX_NEFF_LOCAL_CACHE_DIR": str(scratch / "locks")}
    return ours if str(root) != work.neff_dir else {}


def _lay_out(root: Path, files: Mapping[str, Any]) -> None:
    ray = _ray()
    for place, reference in files.items():
        if name_of(place) is not None:
            make_below(root, (root / place).parent)
            (root / place).write_bytes(ray.get(reference))


_POOLS: dict[int, Pool] = {}
"""Of a Ray worker, by NeuronCores: the process below it stays warm for the next try, and ends with it."""


def _run(work: Work) -> Result:
    pool = _POOLS.get(work.cores)
    if pool is None:
        pool = _POOLS[work.cores] = Pool(slots=1, cores=work.cores)
    begin, is_stopped = time.monotonic(), False
    pool.start(work)
    while True:
        if found := pool.results(_LOOK_S):
            return found[0]
        pool.memory()
        if not is_stopped and 0 < work.timeout_s < time.monotonic() - begin:
            is_stopped = True
            pool.stop(work.id, TIMEOUT)


def _packed(result: Result, root: Path, known: tuple[str, ...]) -> dict[str, bytes]:
    """Give the files that were compiled here."""
    found = {}
    for data in result.records:
        neff = codec.decode(data).neff
        if neff is not None and neff.path not in known:
            try:
                found[neff.path] = (root / neff.path).read_bytes()
            except OSError as error:
                raise CacheError(f"cannot read {neff.path}: {error.strerror}") from error
    return found


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        hint = "python -m pip install 'shapeguard[ray]'"
        raise DeviceError("--executor ray needs Ray, which is not installed here", hint=hint) from error
    return ray
