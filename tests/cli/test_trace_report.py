"""`shapeguard report` as a user meets it, over runs kept in `fixtures/runs`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"


def report(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shapeguard", "report", *words], cwd=RUNS, capture_output=True, text=True, check=False
    )


def test_a_run_is_shown_on_standard_output_verdict_first() -> None:
    done = report("ragged")
    assert done.returncode == 0
    assert done.stdout.startswith("still compiling: 2 of 4 regions came after warm-up (the last at step 4 of 10)\n")
    assert "1. ragged.py:18 (makes the batch): 3 more regions, 11 more eager signatures\n" in done.stdout
    assert "input_ids dim 1 = 9, 5, 13, 7: 4 lengths, no pattern" in done.stdout
    assert "never run on Trainium" in " ".join(done.stdout.split())
    assert "padding: 14% of 172 tokens" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("by", "title"), [("graph", "Graphs"), ("shape", "Shapes"), ("rank", "Ranks"), ("line", "Lines")]
)
def test_a_run_can_be_looked_at_in_other_ways(by: str, title: str) -> None:
    done = report("ragged", "--by", by)
    assert done.returncode == 0
    assert f"\n{title}\n" in done.stdout
    assert "Causes" not in done.stdout


def test_json_is_the_runs_summary() -> None:
    found = json.loads(report("ragged", "--json").stdout)
    assert found["totals"]["regions"] == 4
    assert found["causes"][0]["site"] == {"file": "ragged.py", "line": 18, "function": "collate"}
    assert found["causes"][0]["rules"] == ["SG302"]


def test_a_run_with_more_regions_than_the_other_is_exit_1() -> None:
    worse, better = report("ragged", "--diff", "fixed"), report("fixed", "--diff", "ragged")
    assert (worse.returncode, better.returncode) == (1, 0)
    assert worse.stdout.startswith("more regions compile: 1 → 4\n")
    assert better.stdout.startswith("fewer regions compile: 4 → 1\n")


def test_a_folder_that_is_no_run_is_exit_2(tmp_path: Path) -> None:
    done = report(str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path} holds no run\nhint: give the folder that `shapeguard trace` named\n"
    assert report("nothing").returncode == 2


def test_the_trace_command_starts_without_torch() -> None:
    check = "import sys; import shapeguard.cli.commands.trace, shapeguard.cli.commands.report; "
    check += "import shapeguard.trace.supervise, shapeguard.runs.view; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("mine")
    refused = report("fixed", "--output", f"json={path}")
    assert (refused.returncode, path.read_text()) == (2, "mine")
    assert refused.stderr == f"error: {path} exists\nhint: give another file, or --overwrite\n"
    assert report("fixed", "--output", f"json={path}", "--overwrite").returncode == 0
    assert json.loads(path.read_text())["totals"]["regions"] == 1
