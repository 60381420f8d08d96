"""Two branches merge their locks: with real git, the command as its merge driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from locked_runs import CONFIG, graphs, key, write_run

from shapeguard.core.errors import LockError
from shapeguard.lock.merge import merge
from shapeguard.lock.read import read
from shapeguard.lock.values import Lock, LockedGraph, LockedJob

DRIVER = f"{sys.executable} -m shapeguard lock merge %O %A %B %P"


def lock(*numbers: int, torch: str = "2", **jobs: LockedJob) -> Lock:
    found = [LockedGraph(kind="forward", key=key(number), jobs=("train",)) for number in numbers]
    return Lock(toolchain={"torch": torch}, jobs=jobs or {"train": LockedJob()}, graphs={g.id: g for g in found})


def numbers(of: Lock) -> set[str]:
    return {graph.key for graph in of.graphs.values()}


def keys(*wanted: int) -> set[str]:
    return {key(number) for number in wanted}


def test_what_either_side_added_is_in_and_what_either_removed_is_out():
    assert numbers(merge(lock(1, 2, 3), lock(1, 3, 4), lock(1, 2, 5))) == keys(1, 4, 5)
    assert merge(lock(1), lock(1, 2), lock(1)) == lock(1, 2)
    assert merge(Lock(), lock(1), lock(2)) == lock(1, 2)


def test_a_merge_does_not_depend_on_the_side():
    base, ours, theirs = lock(1, 2), lock(2, 3), lock(1, 2, 4)
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


def test_a_job_that_both_changed_is_asked_for_again():
    base, ours, theirs = (lock(train=LockedJob(settings=text, eager=(text,))) for text in "abc")
    merged = merge(base, ours, theirs).jobs["train"]
    assert (merged.settings, merged.eager) == ("", ("b", "c"))
    assert merge(base, ours, base).jobs["train"].settings == "b"


def test_different_toolchains_do_not_merge():
    with pytest.raises(LockError) as error:
        merge(lock(1), lock(1, torch="3"), lock(1, 2))
    assert str(error.value) == (
        "the branches were locked with different toolchains: torch 3 and 2; "
        "run `shapeguard lock --upgrade` on the merged code"
    )


class Repository:
    """A git repository with a locked project on `main`."""

    def __init__(self, shapeguard) -> None:
        self.shapeguard = shapeguard
        self.git("init", "-q", "-b", "main")
        self.git("config", "merge.shapeguard.driver", DRIVER)
        Path(".gitattributes").write_text("shapeguard.lock merge=shapeguard\n")
        Path(".gitignore").write_text("run*\n")

    def git(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        return subprocess.run(["git", *who, *words], check=check, capture_output=True, text=True, env=env)

    def commit(self, *shapes: tuple[int, int]) -> None:
        write_run(Path(f"run{len(shapes)}-{shapes[-1][0]}"), graphs(*shapes))
        ran = self.shapeguard("lock", "--run", f"train=run{len(shapes)}-{shapes[-1][0]}")
        assert ran.code == 0, ran.err
        self.git("add", ".")
        self.git("commit", "-q", "-m", "x")

    def branches(self) -> subprocess.CompletedProcess[str]:
        """Two branches add one graph each; one is merged into the other."""
        self.commit((4, 8))
        self.git("checkout", "-q", "-b", "one")
        self.commit((4, 8), (5, 8))
        self.git("checkout", "-q", "-b", "two", "main")
        self.commit((4, 8), (6, 8))
        return self.git("merge", "one", "-m", "m", check=False)


def test_two_branches_that_add_a_graph_each_merge_without_conflict(shapeguard):
    Path("shapeguard.toml").write_text(CONFIG + "[jobs.train.budget]\ngraphs = 3\n")
    repository = Repository(shapeguard)
    merged = repository.branches()
    assert merged.returncode == 0, merged.stdout + merged.stderr
    assert [str(graph) for graph in read(Path("shapeguard.lock")).graphs.values()] == [
        "forward Net ids 4×8 int64",
        "forward Net ids 5×8 int64",
        "forward Net ids 6×8 int64",
    ]
    write_run(Path("run-merged"), graphs((4, 8), (5, 8), (6, 8)))
    assert shapeguard("check", "--run", "train=run-merged").code == 0
    assert shapeguard("lock", "--check", "--run", "train=run-merged").code == 0


def test_a_merge_that_passes_the_limit_fails_and_names_both_graphs(shapeguard):
    Path("shapeguard.toml").write_text(CONFIG + "[jobs.train.budget]\ngraphs = 2\n")
    repository = Repository(shapeguard)
    merged = repository.branches()
    assert merged.returncode == 1
    said = merged.stdout + merged.stderr
    assert (
        "train graphs: 3 after the merge, the limit is 2: new are "
        "forward Net ids 5×8 int64 (from the other branch); forward Net ids 6×8 int64 (from this branch)"
    ) in said
    # The file holds both, so that there is nothing to untangle by hand, and it is refused from now on.
    assert len(read(Path("shapeguard.lock")).graphs) == 3
    checked = shapeguard("check", "--static")
    assert checked.code == 1
    assert "train graphs: 3, the limit is 2: forward Net ids 4×8" in checked.out
    assert "ids 5×8" in checked.out and "ids 6×8" in checked.out


def test_a_configuration_in_conflict_does_not_stop_the_merge_of_the_lock(shapeguard):
    for name, shapes in (("o", [(4, 8)]), ("a", [(4, 8), (5, 8)]), ("b", [(4, 8), (6, 8)])):
        Path("shapeguard.toml").write_text(CONFIG)
        Path("shapeguard.lock").unlink(missing_ok=True)
        write_run(Path(f"run-{name}"), graphs(*shapes))
        assert shapeguard("lock", "--run", f"train=run-{name}").code == 0
        Path("shapeguard.lock").rename(f"{name}.lock")
    Path("shapeguard.toml").write_text("<<<<<<< HEAD\n")
    ran = shapeguard("lock", "merge", "o.lock", "a.lock", "b.lock", "shapeguard.lock")
    assert ran.code == 0, ran.err
    assert "the limits were not counted again" in ran.err
    assert len(read(Path("a.lock")).graphs) == 3


@pytest.mark.parametrize("words", [(), ("a",), ("a", "b", "c", "d", "e")])
def test_a_merge_without_its_files_says_how_git_calls_it(shapeguard, words):
    ran = shapeguard("lock", "merge", *words)
    assert ran.code == 2
    assert "git config merge.shapeguard.driver 'shapeguard lock merge %O %A %B %P'" in ran.err
