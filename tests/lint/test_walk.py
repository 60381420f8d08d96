"""Which files a run checks: ignore files as git reads them, patterns, links."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapeguard.lint.globs import Patterns

LINT = ("lint", "--isolated", "--no-cache", "--show-files")


def make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("x = 1\n")


def test_what_git_ignores_is_left_out(shapeguard):
    make("a.py", "gen/b.py", "sub/keep.py", "sub/drop.py")
    Path(".gitignore").write_text("/gen/\ndrop.py\n")
    assert shapeguard(*LINT).out.split() == ["a.py", "sub/keep.py"]


def test_ignore_files_of_the_folders_above_count_up_to_the_repository(shapeguard):
    subprocess.run(["git", "init", "-q"], check=True)
    make("pkg/a.py", "pkg/b.py", "pkg/sub/b.py")
    Path(".gitignore").write_text("b.py\n")
    Path("pkg/sub/.gitignore").write_text("!b.py\n")
    assert shapeguard(*LINT, "pkg").out.split() == ["pkg/a.py", "pkg/sub/b.py"]


def test_an_ignored_folder_that_is_named_is_checked(shapeguard):
    subprocess.run(["git", "init", "-q"], check=True)
    make("env/lib/a.py")
    Path("env/.gitignore").write_text("*\n")
    assert shapeguard(*LINT).out.split() == []
    assert shapeguard(*LINT, "env/lib").out.split() == ["env/lib/a.py"]


def test_links_to_folders_are_not_followed_and_files_come_once(shapeguard):
    make("a/b.py")
    Path("loop").symlink_to(".", target_is_directory=True)
    Path("c.py").symlink_to("a/b.py")
    Path("gone.py").symlink_to("nowhere.py")
    assert shapeguard(*LINT).out.split() == ["a/b.py"]


def test_a_pipe_is_a_problem_and_does_not_hang(shapeguard):
    os.mkfifo("p.py")
    ran = shapeguard("lint", "--isolated", "--no-cache", "p.py")
    assert (ran.code, ran.out) == (2, "problem p.py: is no regular file; pipe it in: `shapeguard lint -` (SG902)\n")


def test_a_name_that_is_no_utf8_is_shown_escaped(shapeguard):
    Path(os.fsdecode(b"caf\xe9.py")).write_text("def (:")
    ran = shapeguard("lint", "--isolated", "--no-cache", "--json")
    assert '"path": "caf\\\\udce9.py"' in ran.out


def test_folders_may_lie_deeper_than_python_may_recurse(shapeguard, tmp_path, monkeypatch):
    folder = "d/" * 1500
    subprocess.run(f"mkdir -p {folder} && echo 'x = 1' > {folder}a.py", shell=True, check=True)
    assert shapeguard(*LINT).out.split() == ["d/" * 1500 + "a.py"]
    monkeypatch.chdir("/")
    subprocess.run(["rm", "-r", str(tmp_path / "d")], check=True)


PIECES = ("a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "*.py", "a*", "\\a")
PATTERN = st.builds(
    lambda bang, lead, parts, trail: f"{bang}{lead}{'/'.join(parts)}{trail}",
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
NAMES = ("a", "b", "a.py", "a/b", "a/b.py", "b/a", "ab/a/b", "a/ab/b", "b/b/b/a.py", "c")


@pytest.fixture(scope="module")
def git_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("git")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns=st.lists(PATTERN, min_size=1, max_size=4))
def test_patterns_mean_what_git_means(git_folder, patterns):
    (git_folder / ".gitignore").write_text("\n".join(patterns) + "\n")
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    ran = subprocess.run(command, cwd=git_folder, input="\n".join(NAMES), capture_output=True, text=True)
    assert [name for name in NAMES if Patterns(patterns).match(name)] == ran.stdout.split()
