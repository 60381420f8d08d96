from __future__ import annotations

import fcntl
import hashlib
import json
import os
from pathlib import Path

import pytest
from graph_records import Shapeguard, filled, record
from neff_folders import NEFF, lock, module, old, torch_neuron

from shapeguard.cache.neff_folder import look
from shapeguard.core.neffs import SIMULATED, name_of, version_order, xla_state


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "neffs"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHAPEGUARD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _removed(shapeguard: Shapeguard, root: Path, *options: str) -> set[str]:
    ran = shapeguard("cache", "clean", "--neff-dir", str(root), "--json", *options)
    assert ran.code == 0, ran.err
    return {os.path.relpath(each["path"], root) for each in json.loads(ran.out)["removed"]}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (f"ab/cd/abcd{'0' * 28}.neff", f"abcd{'0' * 28}"),
        (f"{'e' * 64}/{'e' * 64}.neff", "e" * 64),
        ("neuronxcc-2.20.9961.0+0acef03a/MODULE_56f0d314+617f6939/model.neff", "MODULE_56f0d314+617f6939"),
    ],
)
def test_each_layout_is_read(path: str, key: str) -> None:
    name = name_of(path)
    assert name is not None
    assert name.key == key


@pytest.mark.parametrize(
    "path",
    [
        f"ab/ce/abcd{'0' * 28}.neff",
        f"{'e' * 64}/{'f' * 64}.neff",
        "a.neff",
        "neuronxcc-2.20/MODULE_x/../model.neff",
        "../neuronxcc-2.20/MODULE_x/model.neff",
        f"ab/cd/abcd{'0' * 28}.neff\n",
    ],
)
def test_other_names_belong_to_no_layout(path: str) -> None:
    assert name_of(path) is None


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"model.neff": 5000, "model.done": 0, "model.hlo_module.pb": 9}, "compiled"),
        ({"model.neff": 5000}, "compiled"),
        ({"model.neff": 5, "model.log": 665}, "failed"),
        ({"model.log": 665}, "failed"),
        ({"model.done": 0}, "failed"),
        ({"model.hlo_module.pb": 9}, "unfinished"),
    ],
)
def test_a_module_is_judged_by_its_marks(files: dict[str, int], state: str) -> None:
    assert xla_state(files) == state


def test_newer_compilers_are_known_by_their_numbers() -> None:
    assert version_order("2.9.1+ff") < version_order("2.20.0+00") < version_order("10.0")


def test_scan_lists_all_layouts_with_state_and_size(shapeguard: Shapeguard, root: Path) -> None:
    torch_neuron(root)
    module(root)
    module(root, "MODULE_9+e30acd3a", how="failed")
    ran = shapeguard("cache", "scan", "--neff-dir", str(root), "--json")
    assert ran.code == 0
    (folder,) = json.loads(ran.out)["folders"]
    rows = [(each["layout"], each["compiler"], each["state"]) for each in folder["entries"]]
    assert sorted(rows) == [
        ("torch-neuronx", "", "compiled"),
        ("torch-xla", "2.20.9961.0+0acef03a", "compiled"),
        ("torch-xla", "2.20.9961.0+0acef03a", "failed"),
    ]


def test_scan_finds_the_graph_of_a_file_and_can_note_the_file_in_its_record(
    shapeguard: Shapeguard, root: Path, cache: Path
) -> None:
    filled(cache, record(1, persistent_key="ab" * 16), record(2))
    torch_neuron(root)
    ran = shapeguard("cache", "scan", "--neff-dir", str(root), "--link")
    assert record(1).key.id[:10] in ran.out
    assert "1 records now know their file" in ran.out
    shown = json.loads(shapeguard("cache", "show", record(1).key.id, "--json").out)["record"]["neff"]
    digest = hashlib.sha256(NEFF).hexdigest()
    assert shown == {"digest": digest, "size_bytes": len(NEFF), "path": f"ab/ab/{'ab' * 16}.neff"}


def test_scan_verifies_files_against_their_records(shapeguard: Shapeguard, root: Path, cache: Path) -> None:
    filled(cache, record(1, persistent_key="ab" * 16))
    path = torch_neuron(root)
    shapeguard("cache", "scan", "--neff-dir", str(root), "--link")
    assert shapeguard("cache", "scan", "--neff-dir", str(root), "--verify").code == 0
    path.write_bytes(NEFF[:-1] + b"x")
    ran = shapeguard("cache", "scan", "--neff-dir", str(root), "--verify")
    assert ran.code == 1
    assert "its digest is not the recorded one" in ran.out
    path.write_bytes(NEFF[:100])
    assert (
        "it has 100 bytes, the record says 2004" in shapeguard("cache", "scan", "--neff-dir", str(root), "--verify").out
    )


def test_clean_removes_failed_and_cut_off_compiles_and_stale_locks_only(shapeguard: Shapeguard, root: Path) -> None:
    good = module(root)
    torch_neuron(root)
    failed = module(root, "MODULE_2+aa", how="failed")
    cut_off = module(root, "MODULE_3+aa", how="locked")
    stale = lock(root)
    assert _removed(shapeguard, root) == {str(each.relative_to(root)) for each in (failed, cut_off, stale)}
    assert sorted(each.parent.name for each in root.rglob("*.neff")) == sorted([good.name, "ab"])


def test_a_dry_run_removes_nothing_and_says_the_bytes(shapeguard: Shapeguard, root: Path) -> None:
    failed = module(root, how="failed")
    ran = shapeguard("cache", "clean", "--neff-dir", str(root), "--dry-run")
    assert ran.out.endswith("would remove 1, 15 B\n")
    assert failed.is_dir()


def test_what_a_living_process_holds_stays(shapeguard: Shapeguard, root: Path) -> None:
    module(root, how="locked")
    held = root / "neuronxcc-2.20.9961.0+0acef03a" / "MODULE_123+e30acd3a" / "model.hlo_module.pb.lock"
    other = lock(root)
    with held.open("w") as one, other.open("w") as two:
        old(held)
        old(other)
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(two, fcntl.LOCK_EX)
        assert _removed(shapeguard, root, "--all") == set()
    assert len(_removed(shapeguard, root, "--all")) == 2


def test_a_young_lock_stays_since_its_process_may_be_about_to_take_it(shapeguard: Shapeguard, root: Path) -> None:
    lock(root).touch()
    assert _removed(shapeguard, root) == set()


def test_clean_removes_the_compiles_of_older_compilers(shapeguard: Shapeguard, root: Path) -> None:
    older = module(root, version="2.9.1+aa")
    module(root, version="2.20.1+bb")
    torch_neuron(root)
    assert _removed(shapeguard, root, "--old-versions") == {str(older.relative_to(root))}
    assert not (root / "neuronxcc-2.9.1+aa").exists()


def test_links_are_neither_followed_nor_removed(shapeguard: Shapeguard, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    victim = module(outside, how="failed")
    (root / "neuronxcc-2.20.9961.0+0acef03a").symlink_to(victim.parent, target_is_directory=True)
    inside = root / "neuronxcc-2.1.0"
    inside.mkdir()
    (inside / "MODULE_1+aa").symlink_to(victim, target_is_directory=True)
    (root / "ab").mkdir()
    (root / "ab" / "ab").mkdir()
    (root / "ab" / "ab" / f"{'ab' * 16}.neff").symlink_to(victim / "model.log")
    assert _removed(shapeguard, root, "--all", "--failed", "--locks") == set()
    assert (victim / "model.log").is_file()
    assert look(root).entries == ()


def test_a_folder_that_is_not_there_is_an_error_with_a_next_step(shapeguard: Shapeguard, root: Path) -> None:
    ran = shapeguard("cache", "scan", "--neff-dir", str(root / "no"))
    assert ran.code == 2
    assert ran.err == f"error: {root / 'no'} is no folder\nhint: give the folder of NEFFs with --neff-dir\n"


def test_what_the_simulated_device_left_is_counted_apart_and_stays(shapeguard: Shapeguard, tmp_path: Path) -> None:
    key = "ab" * 16
    torch_neuron(tmp_path / "neffs", key, SIMULATED + key.encode())
    torch_neuron(tmp_path / "neffs", "cd" * 16)
    ran = shapeguard("cache", "scan", "--neff-dir", "neffs")
    assert ran.code == 0
    assert "1 compiled" in ran.out
    assert "1 of the simulated device, which are no NEFFs" in ran.out
    (found,) = json.loads(shapeguard("cache", "scan", "--neff-dir", "neffs", "--json").out)["folders"]
    assert (len(found["entries"]), found["simulated"]) == (1, [f"ab/ab/{key}.neff"])
    assert shapeguard("cache", "clean", "--neff-dir", "neffs", "--all").code == 0
    assert [path.name for path in (tmp_path / "neffs").rglob("*.neff")] == [f"{key}.neff"]
