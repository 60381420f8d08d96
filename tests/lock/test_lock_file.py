"""The lock as a file: the same content is the same bytes, and what cannot be used is named with its line."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from locked_runs import CONFIG, eager, graph, graphs, key, write_run

from shapeguard.cache.named import named
from shapeguard.lock.read import parse
from shapeguard.lock.values import Lock, LockedGraph, LockedJob
from shapeguard.lock.write import text

words = st.text(max_size=12)
names = st.sampled_from(["train", "eval", 'a "job"', "schließen"])


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    jobs = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    found = {}
    for number in range(draw(st.integers(0, 4))):
        owners = tuple(sorted(draw(st.sets(st.sampled_from(jobs), min_size=1))))
        graph = LockedGraph(
            kind=draw(st.sampled_from(["forward", "backward", "inference"])),
            key=key(number),
            model=draw(words),
            inputs=tuple(draw(st.lists(words, max_size=3))),
            constants=tuple(draw(st.lists(words, max_size=2))),
            nodes=draw(st.integers(0, 9)),
            jobs=owners,
            late=owners[: draw(st.integers(0, 1))],
        )
        found[graph.id] = graph
    eager = st.sets(words, max_size=3).map(lambda rows: tuple(sorted(rows)))
    return Lock(
        toolchain={"torch": draw(words)},
        jobs={name: LockedJob(target="trn2", eager=draw(eager), fallbacks=draw(eager)) for name in jobs},
        graphs=found,
    )


@settings(max_examples=150, deadline=None)
@given(locks())
def test_what_is_written_is_read_again_with_any_line_ends(lock: Lock) -> None:
    data = text(lock).encode()
    assert parse(data, name="x") == lock
    assert text(parse(data, name="x")).encode() == data
    assert b"\r" not in data
    assert parse(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), name="x") == lock


@settings(max_examples=60, deadline=None)
@given(locks())
def test_a_lock_that_was_formatted_by_hand_is_the_same_lock(lock: Lock) -> None:
    loose = re.sub(r"(?m)^([a-z]+) = ", r"\1  =  ", text(lock)).replace("\n\n", "\n") + "# a remark\n"
    assert parse(loose.encode(), name="x") == lock


@pytest.fixture
def locked(shapeguard, tmp_path):
    """A project with a lock of two graphs and one eager signature."""
    Path("shapeguard.toml").write_text(CONFIG)
    Path("train.py").write_text("one\ntwo\n    net(ids)\n")
    write_run(Path("run"), [*graphs((4, 8), (2, 8)), *eager(1, "add", (4,))])
    assert shapeguard("lock", "--run", "train=run").code == 0
    return shapeguard


def test_a_lock_is_toml_with_a_block_a_graph_and_a_line_a_signature(locked):
    import tomllib

    data = Path("shapeguard.lock").read_bytes()
    table = tomllib.loads(data.decode())
    assert table["schema"] == 1
    assert table["toolchain"] == {"python": "3.11", "shapeguard": "0.1.0", "torch": "2.13.0"}
    assert [row["inputs"] for row in table["graph"]] == [["ids 2×8 int64"], ["ids 4×8 int64"]]
    assert table["job"]["train"]["eager"] == [f"add(self 4 float32) {key('add', (4,))[:32]}"]
    assert len(named(Path("shapeguard.lock")).keys) == 3


def test_locking_again_changes_nothing(locked):
    before = Path("shapeguard.lock").read_bytes()
    again = locked("lock", "--run", "train=run")
    assert (again.code, again.out) == (0, "shapeguard.lock: 2 graphs, 1 eager signature, unchanged\n")
    assert locked("lock", "--check", "--run", "train=run").code == 0
    assert Path("shapeguard.lock").read_bytes() == before


def test_a_dry_run_and_a_check_write_nothing(locked, monkeypatch):
    before = Path("shapeguard.lock").read_bytes()
    write_run(Path("new"), graphs((4, 8), (6, 8)))
    dry = locked("lock", "--dry-run", "--run", "train=new")
    assert dry.code == 0
    assert "+ train: forward Net ids 6×8 int64\n- train: forward Net ids 2×8 int64\n" in dry.out
    checked = locked("lock", "--locked", "--run", "train=new")
    assert checked.code == 1
    assert checked.out.endswith("would change\nrun `shapeguard lock` and commit the file\n")
    monkeypatch.setenv("SHAPEGUARD_LOCKED", "1")
    assert locked("lock", "--run", "train=new").code == 1
    monkeypatch.delenv("SHAPEGUARD_LOCKED")
    monkeypatch.setenv("CI", "true")
    assert locked("lock", "--run", "train=new").code == 1
    assert Path("shapeguard.lock").read_bytes() == before


def test_a_frozen_lock_is_only_read(locked, monkeypatch):
    ran = locked("lock", "--frozen")
    assert (ran.code, ran.out) == (0, "shapeguard.lock: 2 graphs, 1 eager signature, trusted as it is\n")
    monkeypatch.setenv("SHAPEGUARD_FROZEN", "1")
    assert locked("lock").out == ran.out
    assert locked("lock", "--requirements").out == "torch==2.13.0\n"


def test_a_program_that_failed_locks_nothing_and_its_exit_code_wins(locked):
    before = Path("shapeguard.lock").read_bytes()
    write_run(Path("failed"), graphs((4, 8)), exit_code=7)
    write_run(Path("cut"), graphs((4, 8)), is_cut=True)
    ran = locked("lock", "--run", "train=failed")
    assert ran.code == 7
    assert "the program ended with exit code 7; nothing was locked" in ran.out
    assert locked("lock", "--run", "train=cut").code == 2
    assert Path("shapeguard.lock").read_bytes() == before


def test_jobs_that_share_a_graph_share_its_block(locked):
    Path("shapeguard.toml").write_text(CONFIG + '[jobs.eval]\ncommand = ["eval.py"]\n')
    assert locked("lock", "eval", "--run", "eval=run").code == 0
    lock = Path("shapeguard.lock").read_text()
    assert lock.count("[[graph]]") == 2
    assert lock.count('jobs = ["eval", "train"]') == 2
    Path("shapeguard.toml").write_text(CONFIG)
    assert "- eval: the whole job" in locked("lock", "--run", "train=run").out
    assert "eval" not in Path("shapeguard.lock").read_text()


@pytest.mark.parametrize("name", ["torch", "python", "transformers"])
def test_another_toolchain_is_one_error_and_never_a_list_of_drifts(locked, name):
    other = {"python": "3.11.7", "shapeguard": "0.1.0", "torch": "2.13.0", "transformers": "5.24.0"}
    write_run(Path("run"), graphs((4, 8)), toolchain=other)
    assert locked("lock", "--upgrade", "--run", "train=run").code == 0
    write_run(Path("other"), graphs((9, 9)), toolchain={**other, name: "9.9.9"})
    for command in ("check", "lock"):
        ran = locked(command, "--run", "train=other")
        here = "9.9" if name == "python" else "9.9.9"
        was = "3.11" if name == "python" else other[name]
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            f"error: shapeguard.lock was locked with {name} {was}, here {here}\n"
            "hint: install what it was locked with, or run `shapeguard lock --upgrade`\n"
        )


BLOCK = f'kind = "forward"\nkey = "{key(1)}"\njobs = ["train"]\n'
HEAD = 'schema = 1\n[toolchain]\ntorch = "2"\n[job.train]\n'


@pytest.mark.parametrize(
    ("lock", "message", "hint"),
    [
        ("", "shapeguard.lock:1: it names no schema", "`shapeguard lock --upgrade` writes it anew"),
        ("schema = true\n", "shapeguard.lock:1: schema must be 1, not True", "--upgrade"),
        ("# x\nschema = 2\n", "shapeguard.lock:2: the lock has schema 2, this shapeguard knows 1", "install the"),
        ("schema = 1\nshema = 1\n", "shapeguard.lock:2: unknown key 'shema'", "did you mean 'schema'?"),
        ("schema = 1\ntoolchain = 3\n",
         "shapeguard.lock:2: toolchain must be a table, not 3", "`shapeguard lock --upgrade`"),
        ("schema = 1\n[toolchain]\ntorch = 2\n", "shapeguard.lock:3: toolchain.torch must be a text, not 2", "anew"),
        (HEAD + "eager = 'x'\n", "shapeguard.lock:5: job.train.eager must be a list of texts, not 'x'", "anew"),
        (HEAD + "eagr = []\n", "shapeguard.lock:5: unknown key 'job.train.eagr'", "did you mean 'eager'?"),
        (HEAD + "world = true\n",
         "shapeguard.lock:5: job.train.world must be a whole number from 0 up, not true", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK + "[[graph]]\n" + BLOCK,
         f"shapeguard.lock:11: forward graph {key(1)[:12]}… stands twice, first at line 7", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK.replace("forward", "sideways"),
         "shapeguard.lock:6: kind of graph 1 must be one of forward, backward, inference, not 'sideways'", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK.replace(key(1), "../../etc"),
         "shapeguard.lock:7: key of graph 1 must be 8 to 128 hex digits, not '../../etc'", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK.replace('"train"', '"trian"'),
         "shapeguard.lock:8: graph 1 is of job 'trian', which the lock does not have", "did you mean 'train'?"),
        (HEAD + "[[graph]]\n" + BLOCK.replace('["train"]', "[]"), "shapeguard.lock:8: graph 1 names no job", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK + "inputs = [3]\n",
         "shapeguard.lock:9: graph 1.inputs must be a list of texts, not a list with 3", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK + "nodes = -1\n",
         "shapeguard.lock:9: graph 1.nodes must be a whole number from 0 up, not -1", "anew"),
        (HEAD + "[[graph]]\n" + BLOCK + "nodes = 9223372036854775808\n",
         "shapeguard.lock:9: graph 1.nodes must be a whole number from 0 up, not 9223372036854775808", "anew"),
        (HEAD + "[job.eval]\n[[graph]]\n" + BLOCK + 'late = ["eval"]\n',
         "shapeguard.lock:10: graph 1 is late in job 'eval', which is none of its jobs", "anew"),
        (HEAD.replace('torch = "2"\n', ""), "shapeguard.lock:1: it names no toolchain", "anew"),
        ("schema = 1\njob.train.world = 'x'\n[toolchain]\ntorch = '2'\n",
         "shapeguard.lock:2: job.train.world must be a whole number from 0 up, not 'x'", "anew"),
        ("schema = 1\ngraph = { kind = 3 }\n",
         "shapeguard.lock:2: graph must be a list of tables, [[graph]], not a table", "anew"),
        (HEAD + "eager = ['a',\n", "shapeguard.lock:5: no TOML: ", "mend the line"),
        (HEAD + '[[graph]]\nkey = "a\n', "shapeguard.lock:6: no TOML: ", "mend the line"),
        (HEAD + "[toolchain]\n", "shapeguard.lock:5: no TOML: ", "mend the line"),
        ("schema = 1\n<<<<<<< HEAD\n[job.a]\n=======\n>>>>>>> x\n", "shapeguard.lock:2: an unsolved merge (<<<<<<<)",
         "then run `shapeguard lock`"),
        ("a = " + "[" * 5000, "shapeguard.lock", "`shapeguard lock --upgrade` writes it anew"),
        ("\0\1", "shapeguard.lock:1: no TOML", "mend the line"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_broken_lock_is_refused_with_its_line(locked, lock, message, hint, end):
    Path("shapeguard.lock").write_bytes(lock.replace("\n", end).encode())
    for command in (("check", "--static"), ("lock", "--frozen")):
        ran = locked(*command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: {message}"), ran.err
        assert hint in ran.err
        assert ran.err.count("\n") == 2


def test_a_lock_that_is_not_there_or_no_text_names_the_command(locked):
    Path("shapeguard.lock").write_bytes(b"\xff\xfe")
    assert (
        "shapeguard.lock:1: not UTF-8 (byte 0)\nhint: `shapeguard lock --upgrade` writes it anew" in locked("check").err
    )
    Path("shapeguard.lock").unlink()
    ran = locked("check", "--static")
    assert (ran.code, ran.err) == (2, "error: there is no shapeguard.lock\nhint: `shapeguard lock` writes it\n")
    Path("shapeguard.lock").mkdir()
    for words in (("check", "--static"), ("lock", "--upgrade")):
        ran = locked(*words)
        assert (ran.code, ran.err) == (
            2, "error: shapeguard.lock is no file\nhint: remove it, then run `shapeguard lock`\n"
        )  # fmt: skip


def test_a_broken_lock_is_written_anew_by_the_command_that_the_error_names(locked):
    Path("shapeguard.lock").write_text("schema = 1\nshema = 2\n")
    assert "`shapeguard lock --upgrade` writes it anew" in locked("lock", "--run", "train=run").err
    assert locked("lock", "--upgrade", "--run", "train=run").code == 0
    assert locked("check", "--run", "train=run").code == 0


def test_five_thousand_graphs_are_compared_in_less_than_a_second(locked):
    events = [event for number in range(1, 5001) for event in graph(number, (number, 8))]
    write_run(Path("large"), events)
    assert locked("lock", "--run", "train=large").code == 0
    assert Path("shapeguard.lock").read_text().count("[[graph]]") == 5000
    from datetime import date

    from shapeguard.checks.job import Job
    from shapeguard.checks.judge import Place, judge
    from shapeguard.checks.run import read
    from shapeguard.checks.settings import JobSettings
    from shapeguard.lock.read import read as read_lock

    more = [event for number in range(1, 5001) for event in graph(number, (number + (number > 4900) * 9000, 8))]
    write_run(Path("larger"), more)
    ran = read(Job(name="train", settings=JobSettings(command=("train.py",)), root=Path.cwd()), Path("larger"))
    begin = time.process_time()
    lock = read_lock(Path("shapeguard.lock"))
    verdict = judge(ran, lock, Place(lock=Path("shapeguard.lock")), today=date(2026, 1, 1))
    spent = time.process_time() - begin
    assert len(verdict.difference.added) == len(verdict.difference.gone) == 100
    assert spent < 1.0
