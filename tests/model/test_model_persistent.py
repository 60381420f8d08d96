"""The simulated caches by themselves: hits, locks, eviction, and what their files are."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from shapeguard.cache.neff_folder import look
from shapeguard.core.events import Outcome
from shapeguard.core.neffs import LARGEST_SIMULATED, SIMULATED
from shapeguard.neuron.model.policy import from_environment
from shapeguard.neuron.sim.metrics import Counters
from shapeguard.neuron.sim.neff_cache import NeffCache
from shapeguard.neuron.sim.persistent import FolderStore, MemoryStore, store_for


def cache(store: object, **settings: int) -> NeffCache:
    return NeffCache(store, Counters(is_enabled=True), **settings)  # type: ignore[arg-type]


def folder_store(tmp_path: Path, timeout_s: float = 5.0) -> FolderStore:
    return FolderStore(tmp_path / "neffs", locks=tmp_path / "local", timeout_s=timeout_s)


def test_an_entry_is_found_in_memory_then_on_disk(tmp_path: Path) -> None:
    for store in (MemoryStore(), folder_store(tmp_path)):
        neffs = cache(store)
        outcomes = [neffs.request("key", "program")[1] for _ in range(2)]
        neffs.clear(disk=False)
        outcomes.append(neffs.request("key", "program")[1])
        neffs.clear(disk=True)
        outcomes.append(neffs.request("key", "program")[1])
        assert outcomes == [Outcome.COMPILED, None, Outcome.DISK, Outcome.COMPILED]


def test_the_persistent_key_holds_key_and_program() -> None:
    neffs = cache(MemoryStore())
    assert neffs.request("key", "one")[1] is Outcome.COMPILED
    neffs.clear(disk=False)
    assert neffs.request("key", "another")[1] is Outcome.COMPILED
    neffs.clear(disk=False)
    assert neffs.request("other", "one")[1] is Outcome.COMPILED
    neffs.clear(disk=False)
    assert neffs.request("key", "one")[1] is Outcome.DISK


def test_the_least_recently_used_entry_makes_room() -> None:
    neffs = cache(MemoryStore(), max_entries=2)
    for key in ("a", "b", "a", "c"):
        neffs.request(key, "")
    assert list(neffs.entries) == ["a", "c"]
    assert neffs.stats()["evictions_performed"] == 1
    assert neffs.request("b", "")[1] is Outcome.DISK


def test_a_lock_that_is_held_too_long_is_passed_over(tmp_path: Path) -> None:
    neffs = cache(folder_store(tmp_path, timeout_s=0.2))
    entry, _ = neffs.request("key", "program")
    neffs.clear(disk=True)
    lock = tmp_path / "local" / "locks" / f"{entry.persistent_key}.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        assert neffs.request("key", "program")[1] is Outcome.COMPILED
    assert 0.2 <= time.monotonic() - began < 5


def test_two_processes_that_ask_at_once_compile_once(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    neffs = cache(store)
    entry, _ = neffs.request("key", "program")
    neffs.clear(disk=True)
    lock = tmp_path / "local" / "locks" / f"{entry.persistent_key}.lock"
    held = os.open(lock, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from shapeguard.neuron.sim.metrics import Counters\n"
        "from shapeguard.neuron.sim.neff_cache import NeffCache\n"
        "from shapeguard.neuron.sim.persistent import FolderStore\n"
        "root = Path(sys.argv[1])\n"
        "store = FolderStore(root / 'neffs', locks=root / 'local', timeout_s=60)\n"
        "print('asking', flush=True)\n"
        "print(NeffCache(store, Counters(is_enabled=True)).request('key', 'program')[1])\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "asking\n"
    # It has looked on disk, found nothing, and waits; by now "the other process" has compiled.
    time.sleep(0.3)
    store.put(entry.persistent_key, entry.data)
    os.close(held)
    assert other.communicate(timeout=60)[0] == "disk\n"


def test_nothing_takes_a_simulated_file_for_a_neff(tmp_path: Path) -> None:
    neffs = cache(folder_store(tmp_path))
    entry, _ = neffs.request("key", "program")
    [file] = (tmp_path / "neffs").rglob("*.neff")
    assert file.read_bytes().startswith(SIMULATED)
    assert file.stat().st_size <= LARGEST_SIMULATED
    real = tmp_path / "neffs" / "ab" / "cd" / f"abcd{'0' * 28}.neff"
    real.parent.mkdir(parents=True)
    real.write_bytes(b"x" * 2000)
    found = look(tmp_path / "neffs")
    assert [each.path for each in found.entries] == [real]
    assert (found.simulated, found.strangers) == ((str(file.relative_to(tmp_path / "neffs")),), ())
    # Nor does the simulation take a real one for its own, and clearing leaves it.
    other = tmp_path / "neffs" / entry.persistent_key[:2] / entry.persistent_key[2:4] / file.name
    other.write_bytes(b"y" * 2000)
    assert cache(folder_store(tmp_path)).request("key", "program")[1] is Outcome.COMPILED
    neffs.clear(disk=True)
    assert real.exists()


def test_a_folder_that_cannot_be_written_is_a_cold_cache(tmp_path: Path) -> None:
    (tmp_path / "neffs").write_text("a file")
    (tmp_path / "local").write_text("a file")
    neffs = cache(folder_store(tmp_path))
    assert neffs.request("key", "program")[1] is Outcome.COMPILED
    neffs.clear(disk=False)
    assert neffs.request("key", "program")[1] is Outcome.COMPILED


def test_the_environment_chooses_the_store(tmp_path: Path) -> None:
    assert isinstance(store_for(from_environment({})), MemoryStore)
    assert store_for(from_environment({"TORCH_NEURONX_NEFF_DISABLE_CACHE": "1"})) is None
    store = store_for(from_environment({"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path)}))
    assert isinstance(store, FolderStore)
    assert store.path("ab" * 16) == tmp_path / "ab" / "ab" / f"{'ab' * 16}.neff"
    assert store.path("ab" * 32) == tmp_path / ("ab" * 32) / f"{'ab' * 32}.neff"


def test_a_setting_that_is_no_number_counts_as_unset() -> None:
    policy = from_environment({"TORCH_NEURONX_NEFF_CACHE_LOCK_TIMEOUT": "soon"})
    assert policy.lock_timeout_s == 1200
