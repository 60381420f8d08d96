"""`check` on runs made by hand: limits, waivers, levels, partial runs, and every format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from locked_runs import CONFIG, eager, graph, graphs, write_run

from tests.conftest import REPOSITORY

BUDGET = "[jobs.train.budget]\n"


@pytest.fixture
def project(shapeguard):
    """A project locked with two graphs; `new` has a third, for which line 3 of train.py is the reason."""

    def config(text: str = "") -> None:
        Path("shapeguard.toml").write_text(CONFIG + text)

    config()
    Path("train.py").write_text("one\ntwo\n    net(ids)\n")
    write_run(Path("old"), [*graphs((4, 8), (4, 16)), *eager(1, "add", (4,))])
    write_run(Path("new"), [*graphs((4, 8), (4, 16)), *graph(3, (4, 32), step=7), *eager(1, "add", (4,))])
    assert shapeguard("lock", "--run", "train=old").code == 0
    return shapeguard, config


def rows(ran) -> dict[str, tuple[object, ...]]:
    found = json.loads(ran.out)["rows"]
    return {row["name"]: (row["limit"], row["now"], row["before"], row["status"]) for row in found}


def test_nothing_new_passes_and_the_table_says_so(project):
    shapeguard, config = project
    config(BUDGET + "graphs = 2\n")
    ran = shapeguard("check", "--run", "train=old")
    assert ran.code == 0
    assert ran.out.splitlines()[:3] == [
        "name          limit  now  change  status",
        "train graphs      2    2       0  ok",
        "train eager       -    1       0  ok",
    ]
    assert ran.out.endswith("train: nothing new compiles\n")


def test_a_new_graph_fails_with_its_cause_at_the_users_line(project):
    shapeguard, _ = project
    ran = shapeguard("check", "--run", "train=new", "--output-format", "concise")
    assert ran.code == 1
    assert (
        "train.py:3:5: new-graph train: 1 graph (forward of Net) not in the lock: ids dim 1 = 8, 16, 32: doubles "
        "each time at train.py:3; pad this dimension to one fixed length\n"
    ) in ran.out


def test_every_limit_counts_and_names_the_cause(project):
    shapeguard, config = project
    config(
        BUDGET + 'graphs = 2\nafter-warmup = 0\neager = 0\ncompile-minutes = 1\nfallbacks = 0\n'
        '[[jobs.train.budget.match]]\ninput = "ids"\nshapes = 2\n'
        '[[jobs.train.budget.match]]\ngraph = "backward *"\ngraphs = 0\n'
    )  # fmt: skip
    ran = shapeguard("check", "--run", "train=new", "--json")
    assert ran.code == 1
    assert rows(ran) == {
        "graphs": (2, 3, 2, "over"),
        "after-warmup": (0, 1, 0, "over"),
        "eager": (0, 1, 1, "over"),
        "compile-minutes": (1, 1.2, 0.8, "over"),
        "fallbacks": (0, 0, 0, "ok"),
        "input ids": (2, 3, 2, "over"),
        "backward *": (0, 0, 0, "ok"),
    }
    over = {
        row["message"].partition(":")[0]: row for row in json.loads(ran.out)["findings"] if row["code"] == "over-budget"
    }
    assert (over["train graphs"]["path"], over["train graphs"]["line"]) == ("train.py", 3)
    assert "the limit is 2: ids dim 1 = 8, 16, 32" in over["train graphs"]["message"]
    assert "the limit is 0: ids dim 1 = 8, 16, 32" in over["train after-warmup"]["message"]
    assert over["train eager"]["path"] == "shapeguard.toml"
    assert "the limit is 0: add(self 4 float32)" in over["train eager"]["message"]


def test_levels_decide_what_a_passed_limit_means(project):
    shapeguard, config = project
    config(BUDGET + 'graphs = 2\nlevels = { graphs = "warn", new = "off" }\n')
    ran = shapeguard("check", "--run", "train=new")
    assert (ran.code, "over (warns), 1 new" in ran.out) == (0, True)
    config(BUDGET + 'graphs = 2\nlevel = "off"\nlevels = { unused = "error" }\n')
    ran = shapeguard("check", "--run", "train=new", "--json")
    assert (ran.code, rows(ran)["graphs"][3]) == (0, "off")
    write_run(Path("less"), graphs((4, 8)))
    assert shapeguard("check", "--run", "train=less").code == 1


@pytest.mark.parametrize(
    ("waiver", "code", "said"),
    [
        ("until = 2999-12-31", 0, "waived until 2999-12-31: the new bucket"),
        ("until = 2999-12-31\nallow = 3", 0, "waived until 2999-12-31: the new bucket"),
        ("until = 2999-12-31\nallow = 2", 1, "its waiver allows 2 (the new bucket)"),
        ("until = 2020-01-01", 1, "its waiver ended on 2020-01-01 (the new bucket)"),
    ],
)
def test_a_waiver_lets_a_limit_be_passed_until_its_day(project, waiver, code, said):
    shapeguard, config = project
    config(
        BUDGET + 'graphs = 2\nlevels = { new = "warn" }\n'
        f'[[jobs.train.waivers]]\nlimit = "graphs"\nreason = "the new bucket"\n{waiver}\n'
    )
    ran = shapeguard("check", "--run", "train=new")
    assert ran.code == code
    assert said in ran.out


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ({"exit_code": 7}, 7, "the program ended with exit code 7"),
        ({"is_cut": True}, 1, "rank 0 ended without a last line"),
        ({"exit_code": None}, 1, "nobody saw how the program ended"),
    ],
)
def test_a_run_that_did_not_end_proves_nothing_unused(project, how, code, said):
    shapeguard, _ = project
    write_run(Path("part"), [*graphs((4, 8)), *graph(3, (4, 32))], **how)
    ran = shapeguard("check", "--run", "train=part", "--json")
    found = json.loads(ran.out)
    assert ran.code == code
    assert said in found["problems"][0]["message"]
    assert [row["code"] for row in found["findings"]] == ["new-graph"]
    assert found["unused"] == []


def test_graphs_that_did_not_come_any_more_fail_with_the_line_of_the_lock(project):
    shapeguard, _ = project
    write_run(Path("less"), graphs((4, 8)))
    ran = shapeguard("check", "--run", "train=less", "--json")
    (found,) = json.loads(ran.out)["findings"]
    assert (ran.code, found["code"], found["path"]) == (1, "unused-graph", "shapeguard.lock")
    assert "ids 4×16 int64" in found["message"] and "run `shapeguard lock train`" in found["message"]
    assert "key = " in Path("shapeguard.lock").read_text().splitlines()[found["line"] - 1]


def test_why_lists_what_is_counted_and_the_cause_of_what_is_new(project):
    shapeguard, _ = project
    for name in ("train graphs", "train.graphs", "graphs"):
        ran = shapeguard("check", "--run", "train=new", "--why", name)
        assert ran.code == 1
        lines = ran.out.splitlines()
        assert lines[0] == "train graphs: 3, limit -"
        assert lines[2].startswith("forward Net ids 4×32 int64  ids dim 1 = 8, 16, 32")
        assert lines[3].split("  ")[-1] == "in the lock"
    ran = shapeguard("check", "--run", "train=new", "--why", "train.grahps")
    assert (ran.code, ran.err) == (
        2, "error: no row of the table is called 'train.grahps'\nhint: did you mean 'train graphs'?\n"
    )  # fmt: skip


def test_github_gets_annotations_at_the_line_and_the_table_in_the_summary(project, monkeypatch):
    shapeguard, _ = project
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ran = shapeguard("check", "--run", "train=new", "--output-format", "github")
    assert ran.out.startswith("::error title=shapeguard (new-graph),file=train.py,line=3,endLine=3,col=5,")
    assert "ids dim 1 = 8, 16, 32" in ran.out
    summary = Path("summary.md").read_text()
    assert "| name | limit | now | change | status |" in summary
    assert "| train graphs | - | 3 | +1 | 1 new |" in summary


@pytest.mark.parametrize("run", ["old", "new"])
def test_sarif_is_valid_and_does_not_close_the_linters_alerts(project, run):
    from jsonschema import Draft4Validator

    shapeguard, _ = project
    shapeguard("check", "--run", f"train={run}", "--output", "sarif=out.sarif")
    log = json.loads(Path("out.sarif").read_text())
    schema = json.loads((REPOSITORY / "fixtures/sarif/sarif-schema-2.1.0.json").read_text())
    assert [error.message for error in Draft4Validator(schema).iter_errors(log)] == []
    assert log["runs"][0]["automationDetails"]["id"] == "shapeguard/check/"
    assert len(log["runs"][0]["results"]) == (run == "new")


def test_settings_that_changed_since_ask_for_a_new_lock(project):
    shapeguard, _ = project
    Path("shapeguard.toml").write_text('[jobs.train]\ncommand = ["train.py", "--epochs", "2"]\n')
    for words in (("--static",), ("--run", "train=old")):
        ran = shapeguard("check", *words)
        assert ran.code == 1
        assert "its settings are not those it was locked with: run `shapeguard lock train`" in ran.out
    Path("shapeguard.toml").write_text('[jobs.eval]\ncommand = ["eval.py"]\n')
    ran = shapeguard("check", "--static")
    assert "job eval is not in the lock: run `shapeguard lock eval`" in ran.out
    assert "the lock has job train, which the configuration has not" in ran.out


def test_the_budget_may_change_without_a_new_lock(project):
    shapeguard, config = project
    config(BUDGET + "graphs = 2\n")
    assert shapeguard("check", "--static").code == 0
    config(BUDGET + "graphs = 1\n")
    ran = shapeguard("check", "--static")
    assert ran.code == 1
    assert "train graphs: 2, the limit is 1: forward Net ids 4×16 int64; forward Net ids 4×8 int64" in ran.out


def test_a_static_check_needs_no_torch(project, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for name in ("torch", "transformers", "accelerate"):
        (hidden / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    env = {**os.environ, "PYTHONPATH": str(hidden)}
    for words in (("check", "--static"), ("lock", "--frozen"), ("check", "--run", "train=old")):
        command = [sys.executable, "-m", "shapeguard", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


JOB = '[jobs.train]\ncommand = ["a.py"]\n'


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "shapeguard.toml has no jobs", "`shapeguard init`"),
        ("[jobs.train]\n", "jobs.\"train\" needs `command`", "add `command = …`"),
        ("[jobs.train]\ncommand = []\n", "shapeguard.toml:2: jobs.\"train\".command must not be empty", ""),
        ('[jobs.train]\ncommand = ["  "]\n', "toml:2: jobs.\"train\".command names no program", "write the words"),
        ('[jobs.train]\ncommand = ["a\\u0000"]\n', "toml:2: jobs.\"train\".command holds a NUL", "remove it"),
        (JOB + 'env = { "A=B" = "1" }\n', "toml:3: jobs.\"train\".env: 'A=B' cannot be set as a variable", "no `=`"),
        ('[jobs.merge]\ncommand = ["a.py"]\n', "toml:1: a job cannot be called merge", "git's merge driver"),
        ('\n[jobs."--x"]\ncommand = ["a.py"]\n', "toml:2: '--x' is no name for a job", "use letters"),
        ('[jobs.""]\ncommand = ["a.py"]\n', "toml:1: '' is no name for a job", "use letters"),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'graphs'\nreason = ' '\nuntil = 2026-01-01\n",
         "toml:5: jobs.\"train\".waivers[1].reason must not be empty", ""),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'eager'\nreason = 'x'\nuntil = 2026-01-01\n" * 2,
         "toml:3: jobs.\"train\".waivers has 2 waivers of 'eager'", "join them"),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'eager'\nreason = 'x'\nuntil = 2026-01-01T10:00:00\n",
         "toml:6: jobs.\"train\".waivers[1].until must be a date such as 2026-12-31, not 2026-01-01 10:00:00", ""),
        ('[jobs.train]\ncommand = "a.py"\n',
         "toml:2: jobs.\"train\".command must be a list of texts, not 'a.py'", 'write ["a.py"]'),
        ("[jobs]\ntrain = 3\n", "jobs.\"train\" must be a table, not 3", ""),
        (JOB + "max_steps = 3\n", "unknown key 'jobs.\"train\".max_steps'", "did you mean 'max-steps'?"),
        (JOB + "max-steps = 0\n", "max-steps must be at least 1, not 0", ""),
        (JOB + 'inner = "gpu"\n', "inner = 'gpu' is neither \"cpu\" nor \"meta\"", ""),
        (JOB + 'target = "trn1"\n', "target = 'trn1' is neither \"trn2\" nor \"trn3\"", ""),
        (JOB + 'world = "tp=two"\n', 'world = "tp=two" is no world', 'sizes: "tp=2,fsdp=2"'),
        (JOB + "world = 0\n", "world must be at least 1, not 0", ""),
        (JOB + "env = { A = 1 }\n", 'env."A" must be a text, not 1', ""),
        (JOB + BUDGET + "graph = 1\n", "unknown key 'jobs.\"train\".budget.graph'", "did you mean 'graphs'?"),
        (JOB + BUDGET + "graphs = -1\n", "budget.graphs must be at least 0, not -1", ""),
        (JOB + BUDGET + "graphs = true\n", "budget.graphs must be a whole number, not true", ""),
        (JOB + BUDGET + "compile-minutes = nan\n", "compile-minutes must be at least 0, not nan", ""),
        (JOB + BUDGET + 'level = "wran"\n', "level = 'wran' is neither", "did you mean 'warn'?"),
        (JOB + BUDGET + 'levels = { graphs = "wran" }\n', "levels.\"graphs\" = 'wran'", "did you mean 'warn'?"),
        (JOB + BUDGET + 'levels = { grahps = "warn" }\n', "names 'grahps', which is no limit", "mean 'graphs'?"),
        (JOB + "[[jobs.train.budget.match]]\ninput = 'x'\n", "budget.match of 'input x' has no limit", "`graphs`"),
        (JOB + "[[jobs.train.budget.match]]\nshapes = 1\n", "`shapes` needs an `input`", "input_ids"),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'graphs'\nuntil = 2026-01-01\n", "waivers[1] needs `reason`", "add"),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'graphs'\nreason = ''\n", "reason must not be empty", ""),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'graphs'\nreason = 'x'\n", "waivers[1] needs `until`", "add"),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'graphs'\nreason = 'x'\nuntil = '2026-01-01'\n",
         "toml:6: jobs.\"train\".waivers[1].until must be a date such as 2026-12-31, not '2026-01-01'",
         "without quotes"),
        (JOB + "[[jobs.train.waivers]]\nlimit = 'grahps'\nreason = 'x'\nuntil = 2026-01-01\n",
         "jobs.\"train\".waivers names 'grahps', which is no limit", "did you mean 'graphs'?"),
        (JOB + "[jobs.train]\n", "shapeguard.toml is no TOML: Cannot declare", "line 3"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_used_says_what_is_meant(shapeguard, text, message, hint):
    Path("shapeguard.toml").write_text(text)
    ran = shapeguard("check", "--static")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert hint in ran.err


def test_a_job_or_a_run_that_does_not_exist_says_what_is_meant(project):
    shapeguard, _ = project
    assert shapeguard("check", "trian").err == "error: there is no job 'trian'\nhint: did you mean 'train'?\n"
    ran = shapeguard("check", "--run", "eval=old")
    assert (ran.code, "there is no such job here" in ran.err) == (2, True)
    assert shapeguard("check", "--run", "train").code == 2
    assert shapeguard("check", "--run", "train=nowhere").code == 2


def test_the_settings_of_jobs_are_printed(project):
    shapeguard, config = project
    config('[[jobs.train.waivers]]\nlimit = "graphs"\nreason = "x"\nuntil = 2999-12-31\n')
    settings = json.loads(shapeguard("config", "--json").out)["settings"]
    assert settings["jobs"]["value"]["train"]["waivers"] == [{"limit": "graphs", "reason": "x", "until": "2999-12-31"}]
